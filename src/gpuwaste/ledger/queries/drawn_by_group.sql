-- The energy of a selection's runs, weighed by the prices of its hours: of all (every name NULL), by user, by account,
-- by both, by cluster, and by the steps of $step seconds from $origin on in which runs ended; what is open or ended later
-- is in the last one. NULL in the selection is "any". The energy of several hours counts for them by equal parts.
WITH chosen AS (
    SELECT
        cluster, job_id, run_start, "user", account, (least(coalesce("end", $now), $now, $to_s - 1) - $origin) // $step AS bin
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
-- include: prices
,
-- include: drawn_spans
,
summed AS ( -- before they are divided: a year has millions of rows
    SELECT "user", account, cluster, bin, first_utc, last_utc, sum(energy_j) AS energy_j
    FROM spans
    JOIN chosen USING (cluster, job_id, run_start)
    GROUP BY "user", account, cluster, bin, first_utc, last_utc
),
divided AS (
    SELECT
        "user",
        account,
        cluster,
        bin,
        unnest(range(first_utc, last_utc + 1, 3600)) AS hour_utc,
        energy_j / ((last_utc - first_utc) // 3600 + 1) AS energy_j
    FROM summed
),
hourly AS (
    SELECT "user", account, cluster, bin, hour_utc, sum(energy_j) AS energy_j
    FROM divided
    WHERE hour_utc > $from_s - 3600 AND hour_utc < $to_s
    GROUP BY GROUPING SETS (
        (hour_utc),
        ("user", hour_utc), (account, hour_utc), ("user", account, hour_utc),
        (cluster, hour_utc), (bin, hour_utc)
    )
)
SELECT
    "user",
    account,
    cluster,
    bin,
-- include: drawn_sums
FROM hourly
LEFT JOIN prices USING (hour_utc)
GROUP BY "user", account, cluster, bin
