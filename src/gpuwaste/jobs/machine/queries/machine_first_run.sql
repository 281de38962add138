-- When the earliest run of a cluster started.
SELECT min("start") AS first FROM jobs WHERE cluster = $cluster
