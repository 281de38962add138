-- Unknown and exempt GPU-milliseconds between the edges of the window by reason, user, account, partition and cluster.
WITH
-- include: judged_runs
,
-- include: judged_window
SELECT
    "user",
    account,
    "partition",
    cluster,
    part.of AS of,
    part.what AS what,
    part.reason AS reason,
    sum(part.ms)::BIGINT AS ms
FROM (
    SELECT
        "user",
        account,
        "partition",
        cluster,
-- include: judged_reason_parts
    FROM parts
    WHERE shared IS NOT NULL OR cardinality(own.unknown) > 0 OR cardinality(own.exempt) > 0
)
GROUP BY ALL
