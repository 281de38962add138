-- Removes the ladders of the JSON array $rows; returns their number.
DELETE FROM rule_ladders
WHERE (rule, subject) IN (
    SELECT (n.rule, n.subject)
    FROM (SELECT unnest(from_json_strict($rows::JSON, '[{"rule": "VARCHAR", "subject": "VARCHAR"}]'), recursive := true)) n
)
