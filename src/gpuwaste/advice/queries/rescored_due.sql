-- Running jobs of a cluster that are to be scored again at $now, each with the moment, those before their limit last: at
-- their start, $early_s after it, or $lead_s before their limit (at most $share of it). A run that accounting has lost is
-- open for ever: after a day only its limit counts.
SELECT d.*
FROM (
    SELECT
        o.*,
        unnest([
            CASE WHEN o.limit_at > $now AND o.look_at <= $now THEN 'limit' END,
            CASE WHEN $now < o.run_start + $early_s THEN 'start' END,
            CASE WHEN $now BETWEEN o.run_start + $early_s AND o.run_start + 86400 THEN 'early' END
        ]) AS moment
    FROM (
        SELECT
            *,
            CASE WHEN time_limit_s > 0 THEN run_start + time_limit_s + suspended_s END AS limit_at,
            limit_at - least($lead_s, time_limit_s * $share)::BIGINT AS look_at
        FROM jobs
        WHERE cluster = $cluster AND "end" IS NULL AND "start" IS NOT NULL AND state = 'RUNNING'
    ) o
) d
ANTI JOIN rescored r USING (cluster, job_id, run_start, moment)
WHERE d.moment IS NOT NULL
ORDER BY d.moment = 'limit', d.run_start, d.job_id
LIMIT $most
