-- Stores what the owner of the runs of the JSON array $rows says of them.
INSERT OR REPLACE INTO disputes BY NAME
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
    "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "printed_id": "VARCHAR", "user": "VARCHAR",
    "at_utc": "BIGINT", "words": "VARCHAR"
    }]'), recursive := true)
) n
