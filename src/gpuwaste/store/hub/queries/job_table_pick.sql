-- Numbers the runs of a cluster in the order of submission, for the queries that make columns of them.
CREATE OR REPLACE TEMP TABLE picked_jobs AS
SELECT
    row_number() OVER (ORDER BY submit, job_id, coalesce("start", 0)) - 1 AS row_no,
    cluster, job_id, run_start, submit, "user", account, "partition", qos, name, time_limit_s, req_tres, interactive,
    array_job_id IS NOT NULL AS is_array, "start", cpus, gpus, gpu_type, "end", elapsed_s, suspended_s, state, max_rss_b
FROM jobs
WHERE cluster = $cluster
