CREATE OR REPLACE TEMP TABLE changed_partitions AS
SELECT coalesce(o.name, n.name) AS name
FROM (SELECT name, whole_node FROM partitions WHERE cluster = $cluster) o
FULL JOIN (
    SELECT unnest(from_json_strict($rows::JSON, '[{"cluster": "VARCHAR", "name": "VARCHAR", "whole_node": "BOOLEAN"}]'),
        recursive := true)
) n ON n.name = o.name
WHERE coalesce(o.whole_node, false) <> coalesce(n.whole_node, false)
;
CREATE OR REPLACE TEMP TABLE forgotten AS
SELECT r."end"
FROM judged r
WHERE r.cluster = $cluster AND r."partition" IN (SELECT name FROM changed_partitions)
;
DELETE FROM judged r
USING changed_partitions c
WHERE r.cluster = $cluster AND r."partition" = c.name
;
SELECT "end" FROM forgotten
