-- The runs that hold GPUs, in their order: what a reader must know of each.
SELECT
    place, cluster, job_id, array_job_id, run_start, printed_id, name, "user", account, "partition", state, nodes, gpus,
    time_limit_s, verdict_id
FROM picked_runs
ORDER BY place
