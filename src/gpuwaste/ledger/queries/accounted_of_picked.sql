-- What accounting has of the use of the picked runs' GPUs, $most rows at most; for each run jobstats' rows first.
SELECT p.place, u.* EXCLUDE (cluster, job_id, run_start)
FROM accounted_use u
JOIN picked_runs p USING (cluster, job_id, run_start)
WHERE
    u.run_start >= (SELECT min(run_start) FROM picked_runs)
    AND u.run_start <= (SELECT max(run_start) FROM picked_runs)
ORDER BY p.place, u.source, u.node, u.gpu
LIMIT $most
