-- The runs of a cluster that held nodes in [$since, $until).
SELECT job_id, run_start, "start", "end", nodes, coalesce(gpus, 0) AS gpus, coalesce(cpus, 0) AS cpus, alloc_tres
FROM jobs
WHERE cluster = $cluster AND "start" < $until AND ("end" IS NULL OR "end" > $since)
ORDER BY "start", job_id
