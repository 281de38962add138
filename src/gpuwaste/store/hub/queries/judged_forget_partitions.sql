-- Forgets what was judged of runs in partitions of a cluster that come whole now and did not, or no more, by the JSON array
-- $rows; returns their ends.
DELETE FROM judged r
USING (
    SELECT coalesce(o.name, n.name) AS name
    FROM (SELECT name, whole_node FROM partitions WHERE cluster = $cluster) o
    FULL JOIN (
        SELECT unnest(from_json_strict($rows::JSON, '[{"cluster": "VARCHAR", "name": "VARCHAR", "whole_node": "BOOLEAN"}]'),
            recursive := true)
    ) n ON n.name = o.name
    WHERE coalesce(o.whole_node, false) <> coalesce(n.whole_node, false)
) c
WHERE r.cluster = $cluster AND r."partition" = c.name
RETURNING r."end"
