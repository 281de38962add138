-- The runs for `predictions` and `predictions_bins`, as a scratch table.
CREATE OR REPLACE TEMP TABLE predicted AS
SELECT
    (j."end" - $start) // $block AS block,
    greatest(j."end" - j."start", 0) AS elapsed,
    (v.quantiles::JSON ->> '$.walltime."0.5"')::DOUBLE AS q50,
    (v.quantiles::JSON ->> '$.walltime."0.9"')::DOUBLE AS q90
FROM (
    SELECT cluster, verdict_id, "start", "end"
    FROM jobs
    WHERE "end" >= $start AND "end" < $end AND "start" IS NOT NULL AND verdict_id <> ''
-- include: scope
) j
JOIN verdicts v ON v.id = j.verdict_id AND v.cluster = j.cluster
WHERE q50 IS NOT NULL AND q90 IS NOT NULL
