-- Appends the partitions of the JSON array $rows.
INSERT INTO partitions
SELECT unnest(from_json_strict($rows::JSON, '[{"cluster": "VARCHAR", "name": "VARCHAR", "whole_node": "BOOLEAN"}]'), recursive := true)
