-- Adds the ladders of the JSON array $rows.
INSERT INTO rule_ladders BY NAME
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "rule": "VARCHAR", "hash": "VARCHAR", "subject": "VARCHAR", "began_utc": "BIGINT", "step": "BIGINT",
        "step_utc": "BIGINT", "round": "BIGINT"
    }]'), recursive := true)
) n
