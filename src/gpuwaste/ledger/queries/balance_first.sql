-- The first start or eligible time of a cluster's runs.
SELECT min(least(coalesce("start", submit), submit)) AS first FROM jobs WHERE cluster = $cluster
