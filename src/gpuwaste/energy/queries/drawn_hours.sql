-- The energy of a selection's runs by hour; NULL is "any". That of several hours counts for them by equal parts.
WITH chosen AS (
    SELECT cluster, job_id, run_start
    FROM jobs
    WHERE
        gpus > 0
        AND "start" < $to_s
        AND ("end" IS NULL OR "end" > $from_s)
        AND ($user IS NULL OR "user" = $user)
        AND ($account IS NULL OR account = $account)
        AND ($clusters IS NULL OR list_contains($clusters::VARCHAR[], cluster))
        AND (
            $accounts IS NULL
            OR list_contains(
                $accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': cluster, 'account': account}
            )
        )
),
-- include: energy.drawn_spans
,
summed AS ( -- before they are divided: a year has millions of rows
    SELECT first_utc, last_utc, sum(energy_j) AS energy_j
    FROM spans
    GROUP BY first_utc, last_utc
),
divided AS (
    SELECT
        unnest(range(first_utc, last_utc + 1, 3600)) AS hour_utc,
        energy_j / ((last_utc - first_utc) // 3600 + 1) AS energy_j
    FROM summed
)
SELECT hour_utc, sum(energy_j) AS energy_j
FROM divided
WHERE hour_utc > $from_s - 3600 AND hour_utc < $to_s
GROUP BY hour_utc
ORDER BY hour_utc
