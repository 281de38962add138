-- Stores the findings about the size of requests of the JSON array $rows.
INSERT INTO right_sizes BY NAME
SELECT unnest(from_json_strict($rows::JSON, '[{
    "cluster": "VARCHAR", "user": "VARCHAR", "account": "VARCHAR", "partition": "VARCHAR", "name": "VARCHAR",
    "gpus": "BIGINT", "gpu_type": "VARCHAR", "ended": "BIGINT", "kind": "VARCHAR", "finding": "VARCHAR"
}]'), recursive := true)
