-- The runs that were judged by the standing rules and have causes, that ended after $from_s and by $to_s.
SELECT j.cluster, j.job_id, j.run_start, j."end", j."user", j.account, j.causes
FROM judged j
JOIN rules r ON r.id = j.rules AND r.standing
WHERE j."end" > $from_s AND j."end" <= least($to_s, r.judged_until) AND j.causes <> ''
ORDER BY j."end", j.job_id
LIMIT $limit
