-- Picks the newest $limit submissions since $from_us that $model judged while $beside was scored in shadow; '' is "any".
CREATE OR REPLACE TEMP TABLE picked_verdicts AS
SELECT
    id, cluster, at_utc_us, op, policy, action, would_be, held, sampled, "user", run_job_id, p, quantiles, triggers,
    strftime(make_timestamp(at_utc_us), '%G-W%V') AS week, shadow
FROM verdicts
WHERE at_utc_us >= $from_us AND op = 'submit' AND model_hash = $model AND ($beside = '' OR contains(shadow, '"' || $beside || '"'))
ORDER BY at_utc_us DESC, id
LIMIT $limit
