-- The nodes of a cluster in [$since, $until), the first configurations of each node first.
SELECT node, since, until, gpus, gpu_type, cpus, memory_b, partitions, features
FROM machine_nodes
WHERE cluster = $cluster AND since < $until AND (until IS NULL OR until > $since)
ORDER BY node, since
