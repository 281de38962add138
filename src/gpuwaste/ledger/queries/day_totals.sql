-- The sums of whole days by user, account, partition and cluster.
SELECT
    "user",
    account,
    "partition",
    cluster,
    sum(jobs)::BIGINT AS jobs,
    sum(beyond)::BIGINT AS beyond,
    sum(conflicts)::BIGINT AS conflicts,
    sum(under_jobs)::BIGINT AS under_jobs,
    sum(under_devices)::BIGINT AS under_devices,
    sum(under_ms)::BIGINT AS under_ms,
    sum(asked_jobs)::BIGINT AS asked_jobs,
    sum(asked_devices)::BIGINT AS asked_devices,
-- include: judged_level_sums
    ,
-- include: judged_sums_own
    ,
-- include: judged_sums_shared
FROM day_sums
WHERE
-- include: day_sums_of
GROUP BY "user", account, "partition", cluster
