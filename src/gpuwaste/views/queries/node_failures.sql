-- Runs that ended in the window because a node failed, in order; those within $gap_s of each other are one cluster of
-- failures.
SELECT *, sum(first::INTEGER) OVER (PARTITION BY cluster ORDER BY "end", job_id, run_start) AS number
FROM (
    SELECT
        * EXCLUDE (since),
        coalesce("end" - lag("end") OVER (PARTITION BY cluster ORDER BY "end", job_id, run_start) > $gap_s, true) AS first
    FROM (
-- days: node_failures_days
    )
)
ORDER BY "end", job_id, run_start
LIMIT $limit
