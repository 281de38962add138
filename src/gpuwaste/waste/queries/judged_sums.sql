-- GPU-milliseconds between the edges of the window, by user, account and partition; `shared` is NULL where none was shared.
WITH
-- include: waste.judged_runs
,
-- include: waste.judged_window
,
of_own AS (
    SELECT
        "user",
        account,
        "partition",
-- include: waste.judged_sums_own
    FROM parts
    GROUP BY "user", account, "partition"
),
of_shared AS ( -- of few runs
    SELECT
        "user",
        account,
        "partition",
-- include: waste.judged_sums_shared
    FROM parts
    WHERE shared IS NOT NULL
    GROUP BY "user", account, "partition"
)
SELECT o.*, s.shared
FROM of_own o
LEFT JOIN of_shared s USING ("user", account, "partition")
