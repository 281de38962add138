-- GPU-milliseconds between the edges of the window, by user, account, partition and cluster; `shared` is NULL
-- where none was shared.
WITH
-- include: judged_runs
,
-- include: judged_window
,
of_own AS (
    SELECT
        "user",
        account,
        "partition",
        cluster,
-- include: judged_sums_own
    FROM parts
    GROUP BY "user", account, "partition", cluster
),
of_shared AS ( -- of few runs
    SELECT
        "user",
        account,
        "partition",
        cluster,
-- include: judged_sums_shared
    FROM parts
    WHERE shared IS NOT NULL
    GROUP BY "user", account, "partition", cluster
)
SELECT o.*, s.shared
FROM of_own o
LEFT JOIN of_shared s USING ("user", account, "partition", cluster)
