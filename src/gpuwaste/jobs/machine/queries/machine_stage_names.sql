-- Adds hostlists with their names, the JSON array $rows.
INSERT INTO list_names
SELECT nodes, unnest(names), generate_subscripts(names, 1) - 1, len(names)
FROM (SELECT unnest(from_json_strict($rows::JSON, '[{"nodes": "VARCHAR", "names": ["VARCHAR"]}]'), recursive := true))
