-- Counts of runs and of their devices, by user, account, partition and cluster; runs count whole.
WITH
-- include: judged_runs
SELECT
    "user",
    account,
    "partition",
    cluster,
    count(*) FILTER ("end" IS NULL) AS running,
-- include: judged_count_sums
FROM runs
GROUP BY "user", account, "partition", cluster
