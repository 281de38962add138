-- What accounting itself has of the use of GPUs of the runs that ended, between the edges of the window, in GPU-seconds:
-- jobstats' means by GPU (told: with a mean, used: mean utilization times the time, zero: at 0 % at every reading, others:
-- the unused GPUs of runs that used one of several), and of runs without these Slurm's largest reading (peak, flat: it is 0).
WITH runs AS (
    SELECT cluster, job_id, run_start, gpus,
        greatest(least("end", $end) - greatest("start", $start) - suspended_s, 0) AS span_s
    FROM jobs
    WHERE gpus > 0 AND "end" > $start AND "start" < $end
-- include: scope
), told AS (
    SELECT
        u.cluster,
        u.job_id,
        u.run_start,
        any_value(r.gpus) AS gpus,
        any_value(r.span_s) AS span_s,
        count(*) AS told,
        sum(u.mean_pct) / 100 AS used,
        count(*) FILTER (u.peak_pct = 0) AS zero
    FROM accounted_use u
    JOIN runs r USING (cluster, job_id, run_start)
    WHERE u.source = 'jobstats' AND u.gpu <> '' AND u.mean_pct IS NOT NULL
    GROUP BY u.cluster, u.job_id, u.run_start
), peaks AS (
    SELECT r.gpus * r.span_s AS gpu_s, u.peak_pct = 0 AS flat
    FROM accounted_use u
    JOIN runs r USING (cluster, job_id, run_start)
    ANTI JOIN told USING (cluster, job_id, run_start)
    WHERE u.source = 'slurm' AND u.peak_pct IS NOT NULL
)
SELECT
    coalesce(sum(told * span_s), 0)::BIGINT AS told_s,
    coalesce(sum(used * span_s), 0)::DOUBLE AS used_s,
    coalesce(sum(zero), 0)::BIGINT AS zero_gpus,
    coalesce(sum(zero * span_s), 0)::BIGINT AS zero_s,
    count(*) FILTER (gpus > 1 AND told = gpus AND zero = gpus - 1) AS one_of_many,
    coalesce(sum(zero * span_s) FILTER (gpus > 1 AND told = gpus AND zero = gpus - 1), 0)::BIGINT AS others_s,
    (SELECT count(*) FROM peaks) AS peak_runs,
    (SELECT coalesce(sum(gpu_s), 0)::BIGINT FROM peaks) AS peak_s,
    (SELECT count(*) FROM peaks WHERE flat) AS flat_runs,
    (SELECT coalesce(sum(gpu_s), 0)::BIGINT FROM peaks WHERE flat) AS flat_s
FROM told
