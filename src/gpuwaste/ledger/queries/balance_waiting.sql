-- Runs of a cluster that request GPUs (with $cpus: all) and waited in [$since, $until): eligible then, and not started or gone before.
SELECT job_id, run_start, coalesce(eligible, submit) AS eligible, "start", "end", "partition", nodes, gpus, n_nodes, cpus,
    alloc_tres, req_tres, gpu_type, constraints, reason, time_limit_s
FROM jobs
WHERE cluster = $cluster
    AND coalesce(eligible, submit) < $until
    AND coalesce("start", "end", $until) > $since
    AND coalesce("start", "end", $until) > coalesce(eligible, submit)
    AND ($cpus OR gpus > 0 OR contains(req_tres, 'gres/gpu'))
    AND coalesce(reservation, '') = ''
    AND NOT (eligible IS NULL AND starts_with(coalesce(reason, ''), 'JobHeld'))
ORDER BY job_id, run_start
