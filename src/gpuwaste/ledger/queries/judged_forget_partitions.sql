-- Forgets what was judged of runs in partitions of a cluster that come whole now and did not, or no more, by the JSON array
-- $rows; returns their ends.
DELETE FROM judged r
USING (
-- include: partitions_changed
) c
WHERE r.cluster = $cluster AND r."partition" = c.name
RETURNING r."end"
