-- Removes what nodes told of runs that were never there: the JSON array $rows has a hostlist and a node in each item.
DELETE FROM ledger_seen s
USING picked_runs p, (SELECT unnest(from_json_strict($rows::JSON, '[{"nodes": "VARCHAR", "node": "VARCHAR"}]'), recursive := true)) n
WHERE p.place = s.place AND n.nodes = p.nodes AND n.node = s.node
