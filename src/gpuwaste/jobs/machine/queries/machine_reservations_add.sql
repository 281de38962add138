-- Adds reservations of a cluster, a JSON array.
INSERT INTO machine_reservations BY NAME
SELECT $cluster AS cluster, unnest(from_json_strict($rows::JSON,
    '[{"name": "VARCHAR", "start": "BIGINT", "end": "BIGINT", "nodes": "VARCHAR", "flags": "VARCHAR"}]'), recursive := true)
