-- Counts of runs and of their devices.
    count(*) AS jobs,
    count(*) FILTER (beyond > 0) AS beyond,
    count(*) FILTER (conflict) AS conflicts,
    count(*) FILTER (under_devices > 0) AS under_jobs,
    sum(under_devices)::BIGINT AS under_devices,
    sum(under_ms)::BIGINT AS under_ms,
    count(*) FILTER (asked_devices > 0) AS asked_jobs,
    sum(asked_devices)::BIGINT AS asked_devices,
-- include: judged_level_sums
