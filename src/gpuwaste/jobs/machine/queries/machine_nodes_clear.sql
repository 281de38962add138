-- Removes the nodes of a cluster.
DELETE FROM machine_nodes WHERE cluster = $cluster
