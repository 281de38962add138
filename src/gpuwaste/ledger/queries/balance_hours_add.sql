-- Adds hours of a cluster, a JSON array.
INSERT INTO balance_hours BY NAME
SELECT $cluster AS cluster, unnest(from_json_strict($rows::JSON,
    '[{"hour_utc": "BIGINT", "partitions": "VARCHAR", "gpu_type": "VARCHAR", "class": "VARCHAR", "gpu_s": "BIGINT",
    "estimated_s": "BIGINT", "over_s": "BIGINT"}]'), recursive := true)
