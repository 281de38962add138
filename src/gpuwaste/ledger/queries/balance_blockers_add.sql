-- Adds runs that were in the way, a JSON array.
INSERT INTO balance_blockers BY NAME
SELECT $cluster AS cluster, unnest(from_json_strict($rows::JSON,
    '[{"hour_utc": "BIGINT", "class": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "node": "VARCHAR",
    "gpu_s": "BIGINT"}]'), recursive := true)
