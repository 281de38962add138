-- Runs that were in the way in [$since, $until), by class and node: the $most with the most GPU-seconds, and those of $also,
-- a JSON array.
WITH told AS NOT MATERIALIZED (
    SELECT class, job_id, run_start, node, gpu_s
    FROM balance_blockers
    WHERE cluster = $cluster AND hour_utc >= $since AND hour_utc < $until
), chosen AS (
    SELECT * FROM (
        SELECT class, job_id, run_start
        FROM told
        GROUP BY ALL
        ORDER BY sum(gpu_s) DESC, class, job_id, run_start
        LIMIT $most
    )
    UNION
    SELECT unnest(from_json_strict($also::JSON,
        '[{"class": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'), recursive := true)
)
SELECT class, job_id, run_start, node, sum(gpu_s)::BIGINT AS gpu_s
FROM told
SEMI JOIN chosen USING (class, job_id, run_start)
GROUP BY ALL
