-- The actions of the rules and subjects of the JSON array $rows that were not sent yet.
SELECT *
FROM actions
WHERE status IN ('intended', 'approved')
    AND (rule, subject) IN (
        SELECT (n.rule, n.subject)
        FROM (SELECT unnest(from_json_strict($rows::JSON, '[{"rule": "VARCHAR", "subject": "VARCHAR"}]'), recursive := true)) n
    )
ORDER BY decided_utc, id
