-- The runs of the picked verdicts, by the token of each run, or by the job that a modification named, as it ended: what
-- advice/verdicts/hits.py judges by. A plan is of its user's own job: whoever recorded it named the id. under and fewer are what the ledger says of its GPUs, NULL where that is not enough known.
CREATE OR REPLACE TEMP TABLE verdict_runs AS
WITH changes AS MATERIALIZED (
    SELECT id, cluster, run_job_id, at_utc_us // 1000000 AS at, CASE WHEN op = 'plan' THEN "user" END AS owner
    FROM picked_verdicts WHERE run_job_id IS NOT NULL
),
told AS MATERIALIZED ( -- each run of a verdict once
    SELECT p.id, j.cluster, j.job_id, j.printed_id, j.run_start, j."start", j."end", j.elapsed_s, j.suspended_s, j.state, j.gpus, j.time_limit_s
    FROM jobs j
    JOIN (SELECT id FROM picked_verdicts) p ON p.id = j.verdict_id
    UNION ALL
    SELECT p.id, j.cluster, j.job_id, j.printed_id, j.run_start, j."start", j."end", j.elapsed_s, j.suspended_s, j.state, j.gpus, j.time_limit_s
    FROM jobs j
    JOIN changes p ON p.cluster = j.cluster AND p.run_job_id = j.job_id AND coalesce(p.owner, j."user") = j."user"
    WHERE (j."end" IS NULL OR j."end" >= p.at) AND j.verdict_id <> p.id
    UNION ALL
    SELECT p.id, j.cluster, j.job_id, j.printed_id, j.run_start, j."start", j."end", j.elapsed_s, j.suspended_s, j.state, j.gpus, j.time_limit_s
    FROM jobs j
    JOIN changes p ON p.cluster = j.cluster AND p.run_job_id = j.array_job_id AND coalesce(p.owner, j."user") = j."user"
    WHERE (j."end" IS NULL OR j."end" >= p.at) AND j.verdict_id <> p.id AND j.job_id <> p.run_job_id
),
runs AS (
    SELECT DISTINCT cluster, job_id, run_start, gpus, "start", "end", suspended_s
    FROM told
    WHERE gpus > 0 AND "end" IS NOT NULL
),
-- include: gpu_use
SELECT
    t.id, t.job_id, t.printed_id, t.run_start, t.state, t."end", t."start", t."start" IS NOT NULL AS ran,
    CASE WHEN t.elapsed_s > 0 AND t.time_limit_s > 0 THEN t.elapsed_s >= t.time_limit_s END AS at_limit,
    u.coverage >= $min_coverage AND NOT isnan(u.coverage) AS known_use,
    CASE WHEN known_use AND t.elapsed_s > $min_run_s THEN u.used_ratio < $underused_ratio END AS under,
    CASE WHEN known_use AND t.elapsed_s > $min_run_s THEN u.gpus_active < t.gpus END AS fewer
FROM told t
LEFT JOIN gpu_use u ON u.cluster = t.cluster AND u.job_id = t.job_id AND u.run_start = t.run_start
