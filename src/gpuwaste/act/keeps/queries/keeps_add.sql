-- Adds the keeps of the JSON array $rows.
INSERT INTO keeps BY NAME
SELECT unnest(from_json_strict($rows::JSON, '[{
    "id": "VARCHAR", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "printed_id": "VARCHAR",
    "user": "VARCHAR", "account": "VARCHAR", "asked_by": "VARCHAR", "at_utc": "BIGINT", "since_utc": "BIGINT",
    "until_utc": "BIGINT", "reason": "VARCHAR"
}]'), recursive := true)
