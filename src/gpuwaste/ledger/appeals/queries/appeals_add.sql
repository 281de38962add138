-- Adds the rows of the JSON array $rows, one appeal's.
INSERT INTO appeals BY NAME
SELECT unnest(from_json_strict($rows::JSON, '[{
    "id": "VARCHAR", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "printed_id": "VARCHAR",
    "kind": "VARCHAR", "about": "VARCHAR", "user": "VARCHAR", "at_utc": "BIGINT", "words": "VARCHAR",
    "evidence": "VARCHAR", "status": "VARCHAR", "outcome": "VARCHAR", "reply": "VARCHAR", "replied_by": "VARCHAR",
    "replied_utc": "BIGINT"
}]'), recursive := true)
