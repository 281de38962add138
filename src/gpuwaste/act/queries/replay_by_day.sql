-- Which share of the GPU time of the runs that were idle at times is kept by day only.
SELECT coalesce(sum(ms) FILTER (by_day) / nullif(sum(ms), 0), 0)::DOUBLE AS ratio
FROM (
    SELECT t1_ms - t0_ms AS ms, false AS by_day, cluster, job_id, run_start FROM hours
    UNION ALL BY NAME
    SELECT t1_ms - t0_ms AS ms, true AS by_day, cluster, job_id, run_start FROM days
)
SEMI JOIN stretches USING (cluster, job_id, run_start)
