-- Adds outages of a cluster, a JSON array.
INSERT INTO machine_outages BY NAME
SELECT $cluster AS cluster, unnest(from_json_strict($rows::JSON,
    '[{"node": "VARCHAR", "start": "BIGINT", "end": "BIGINT", "state": "VARCHAR"}]'), recursive := true)
