-- The energy of single runs, weighed by the prices of its hours; $keys are "CLUSTER ID START". That of several hours counts
-- for them by equal parts.
WITH chosen AS (
    SELECT key[1] AS cluster, key[2]::BIGINT AS job_id, key[3]::BIGINT AS run_start
    FROM (SELECT string_split(unnest($keys::VARCHAR[]), ' ') AS key)
),
-- include: prices
,
-- include: drawn_spans
,
divided AS (
    SELECT
        cluster,
        job_id,
        run_start,
        unnest(range(first_utc, last_utc + 1, 3600)) AS hour_utc,
        energy_j / ((last_utc - first_utc) // 3600 + 1) AS energy_j
    FROM spans
),
hourly AS (
    SELECT cluster, job_id, run_start, hour_utc, sum(energy_j) AS energy_j
    FROM divided
    GROUP BY cluster, job_id, run_start, hour_utc
)
SELECT
    cluster,
    job_id,
    run_start,
-- include: drawn_sums
FROM hourly
LEFT JOIN prices USING (hour_utc)
GROUP BY cluster, job_id, run_start
