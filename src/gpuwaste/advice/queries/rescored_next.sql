-- The first instant after $now at which a running job of a cluster is to be scored again, NULL where none is.
SELECT min(instant) AS at_utc
FROM (
    SELECT unnest([
        run_start + $early_s,
        CASE WHEN time_limit_s > 0
            THEN run_start + time_limit_s + suspended_s - least($lead_s, time_limit_s * $share)::BIGINT
        END
    ]) AS instant
    FROM jobs
    WHERE cluster = $cluster AND "end" IS NULL AND "start" IS NOT NULL AND state = 'RUNNING'
)
WHERE instant > $now
