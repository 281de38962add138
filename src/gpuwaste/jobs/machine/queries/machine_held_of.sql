-- What slurmctld said of runs that started in [$since, $until).
SELECT job_id, run_start, node, gpus, cpus, memory_b
FROM held_on_node
WHERE cluster = $cluster AND run_start >= $since AND run_start < $until
ORDER BY run_start, job_id, node
