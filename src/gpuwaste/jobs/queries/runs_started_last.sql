-- Runs that started since $since, the last $most of them, in the order of their starts.
SELECT * FROM (
    SELECT
        "user", account, "partition", cpus, req_tres, time_limit_s, submit, "start", "end"
    FROM jobs
    WHERE "start" >= $since AND "start" >= submit
    ORDER BY "start" DESC
    LIMIT $most
)
ORDER BY "start"
