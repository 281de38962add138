-- The rows of the JSON array $rows that were not kept before.
SELECT n.source, n.line, n.reason, n.raw, n.at_utc
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "source": "VARCHAR", "line": "BIGINT", "reason": "VARCHAR", "raw": "VARCHAR", "at_utc": "BIGINT"
    }]'), recursive := true)
) n
ANTI JOIN quarantine q ON q.source = n.source AND q.reason = n.reason AND q.raw = n.raw
