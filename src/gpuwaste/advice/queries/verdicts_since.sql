-- Picks what a score needs of the verdicts since $from_us.
CREATE OR REPLACE TEMP TABLE picked_verdicts AS
SELECT
    id, cluster, at_utc_us, op, policy, action, would_be, held, sampled, "user", run_job_id, p, quantiles, triggers,
    strftime(make_timestamp(at_utc_us), '%G-W%V') AS week
FROM verdicts
WHERE at_utc_us >= $from_us
