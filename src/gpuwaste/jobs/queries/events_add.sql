-- Appends the events of the JSON array $rows in their order.
INSERT INTO events (kind, cluster, job_id, run_start, at_utc)
SELECT unnest(from_json_strict($rows::JSON, '[{
    "kind": "VARCHAR", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "at_utc": "BIGINT"
}]'), recursive := true)
