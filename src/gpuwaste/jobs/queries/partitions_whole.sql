-- The partitions of a cluster in which a job holds its nodes alone.
SELECT name FROM partitions WHERE cluster = $cluster AND whole_node
