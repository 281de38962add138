-- What a message says of runs that were in the way.
SELECT job_id, run_start, printed_id, name, "user", account, gpus, n_nodes, cpus, alloc_tres
FROM jobs
WHERE cluster = $cluster AND list_contains($job_ids::BIGINT[], job_id)
