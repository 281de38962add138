-- Runs that ended since $since and had a limit, the last $most of them, in the order of their ends.
SELECT * FROM (
    SELECT
        "user", "partition", gpus, time_limit_s, "end",
        greatest(0, "end" - "start") AS run_s
    FROM jobs
    WHERE "end" >= $since AND "start" IS NOT NULL AND time_limit_s > 0
    ORDER BY "end" DESC
    LIMIT $most
)
ORDER BY "end"
