-- Counts of runs and of their devices, by user, account and partition; runs count whole.
WITH
-- include: waste.judged_runs
SELECT
    "user",
    account,
    "partition",
    count(*) AS jobs,
    count(*) FILTER ("end" IS NULL) AS running,
    count(*) FILTER (beyond > 0) AS beyond,
    count(*) FILTER (conflict) AS conflicts,
    count(*) FILTER (under_devices > 0) AS under_jobs,
    sum(under_devices)::BIGINT AS under_devices,
    sum(under_ms)::BIGINT AS under_ms,
    count(*) FILTER (asked_devices > 0) AS asked_jobs,
    sum(asked_devices)::BIGINT AS asked_devices,
    [
        sum(level_devices[1]), sum(level_devices[2]), sum(level_devices[3]), sum(level_devices[4]), sum(level_devices[5])
    ]::BIGINT[] AS level_devices,
    [sum(level_ms[1]), sum(level_ms[2]), sum(level_ms[3]), sum(level_ms[4]), sum(level_ms[5])]::BIGINT[] AS level_ms
FROM runs
GROUP BY "user", account, "partition"
