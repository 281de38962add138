-- Removes a cluster's partitions before they are written anew.
DELETE FROM partitions WHERE cluster = $cluster
