-- Unknown and exempt GPU-milliseconds of whole days by reason, by user, account and partition.
SELECT "user", account, "partition", "of", what, reason, sum(ms)::BIGINT AS ms
FROM day_reasons
WHERE
-- include: waste.day_sums_of
GROUP BY ALL
