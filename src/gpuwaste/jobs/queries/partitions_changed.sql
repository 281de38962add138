-- The partitions of a cluster that come whole now and did not, or no more, by the JSON array $rows.
    SELECT coalesce(o.name, n.name) AS name
    FROM (SELECT name, whole_node FROM partitions WHERE cluster = $cluster) o
    FULL JOIN (
        SELECT unnest(from_json_strict($rows::JSON, '[{"cluster": "VARCHAR", "name": "VARCHAR", "whole_node": "BOOLEAN"}]'),
            recursive := true)
    ) n ON n.name = o.name
    WHERE coalesce(o.whole_node, false) <> coalesce(n.whole_node, false)
