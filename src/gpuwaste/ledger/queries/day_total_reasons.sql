-- Unknown and exempt GPU-milliseconds of whole days by reason, by user, account, partition and cluster.
SELECT "user", account, "partition", cluster, "of", what, reason, sum(ms)::BIGINT AS ms
FROM day_reasons
WHERE
-- include: day_sums_of
GROUP BY ALL
