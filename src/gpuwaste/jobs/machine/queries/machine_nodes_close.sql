-- Ends the present configuration of the nodes $nodes of a cluster.
UPDATE machine_nodes SET until = $now
WHERE cluster = $cluster AND until IS NULL AND list_contains($nodes::VARCHAR[], node)
