-- Actions, the newest first, with how their runs ended; null parameters select nothing.
SELECT a.*, j.state AS run_state, j."end" AS run_end
FROM actions a
LEFT JOIN jobs j ON j.cluster = a.cluster AND j.job_id = a.job_id AND j.run_start = a.run_start
WHERE ($status IS NULL OR a.status = $status)
    AND ($rule IS NULL OR a.rule = $rule)
    AND ($user IS NULL OR a."user" = $user)
    AND a.decided_utc >= $from_s
    AND a.decided_utc < $to_s
ORDER BY a.decided_utc DESC, a.id
LIMIT $limit
