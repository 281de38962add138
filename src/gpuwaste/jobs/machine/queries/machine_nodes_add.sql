-- Adds nodes of a cluster, a JSON array.
INSERT INTO machine_nodes BY NAME
SELECT $cluster AS cluster, unnest(from_json_strict($rows::JSON,
    '[{"node": "VARCHAR", "since": "BIGINT", "until": "BIGINT", "gpus": "INTEGER", "gpu_type": "VARCHAR", "cpus": "INTEGER",
    "memory_b": "BIGINT", "partitions": "VARCHAR", "features": "VARCHAR"}]'), recursive := true)
