-- The facts of the model in use ($name, $hash, made at $created): what it said of jobs at their submission, beside how
-- those that ended in the last 7 days did end. No row where no model is in use. A verdict of a rejected job has no job.
CREATE OR REPLACE TEMP TABLE facts AS
WITH said AS (
    SELECT v.p['failure'] AS p, (j.state <> 'COMPLETED')::INTEGER AS failed
    FROM jobs j
    JOIN verdicts v ON v.cluster = j.cluster AND v.id = j.verdict_id AND v."user" = j."user"
    WHERE j.cluster = $cluster AND j."end" > $now - 7 * 86400 AND j."end" <= $now AND j.verdict_id <> ''
        AND j.state IN ('COMPLETED', 'FAILED', 'OUT_OF_MEMORY') AND v.model_hash = $hash AND v.p['failure'] IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY j.job_id, j.run_start ORDER BY v.at_utc_us DESC) = 1
),
bins AS (SELECT count(*) AS number, abs(avg(p) - avg(failed)) AS apart FROM said GROUP BY least(floor(p * 10), 9)),
summed AS (
    SELECT
        count(*) AS number, avg(failed) AS failed, avg(p) AS expected, avg((p - failed) * (p - failed)) AS brier
    FROM said
)
SELECT
    0::BIGINT AS place,
    $cluster::VARCHAR AS cluster,
    0::BIGINT AS job_id,
    0::BIGINT AS run_start,
    $now::BIGINT AS at_utc,
    $name::VARCHAR AS printed_id,
    $name::VARCHAR AS "model.name",
    greatest($now - $created, 0)::DOUBLE AS "model.age_s",
    s.number::BIGINT AS "model.judged_7d",
    s.failed::DOUBLE AS "model.failed_ratio",
    s.expected::DOUBLE AS "model.expected_ratio",
    (SELECT sum(number * apart) / nullif(sum(number), 0) FROM bins)::DOUBLE AS "model.ece",
    (1 - s.brier / nullif(s.failed * (1 - s.failed), 0))::DOUBLE AS "model.skill"
FROM summed s
WHERE $name <> ''
