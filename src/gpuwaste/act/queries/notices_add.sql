-- Adds the notices of the JSON array $rows.
INSERT INTO notices BY NAME
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
    "kind": "VARCHAR", "user": "VARCHAR", "period_start": "BIGINT", "period_end": "BIGINT", "dry": "BOOLEAN",
    "status": "VARCHAR", "why": "VARCHAR", "detail": "VARCHAR", "address": "VARCHAR", "at_utc": "BIGINT",
    "jobs": "BIGINT", "gpu_s": "DOUBLE", "wasted_s": "DOUBLE", "exempt_s": "DOUBLE", "coverage": "DOUBLE",
    "tries": "INTEGER", "next_utc": "BIGINT", "document": "VARCHAR"
    }]'), recursive := true)
) n
