-- The configuration of the nodes of a cluster that they have now.
SELECT node, since, until, gpus, gpu_type, cpus, memory_b, partitions, features
FROM machine_nodes
WHERE cluster = $cluster AND until IS NULL
