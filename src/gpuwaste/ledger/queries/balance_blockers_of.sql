-- The runs that were in the way in [$since, $until), by class and node.
SELECT class, job_id, run_start, node, sum(gpu_s)::BIGINT AS gpu_s
FROM balance_blockers
WHERE cluster = $cluster AND hour_utc >= $since AND hour_utc < $until
GROUP BY ALL
