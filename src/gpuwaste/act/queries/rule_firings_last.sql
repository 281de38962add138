-- When the rules of the JSON array $rows did their last step with each subject, or would have done it, since $since.
SELECT rule, hash, subject, max(at_utc) AS last_utc
FROM rule_firings
WHERE at_utc > $since
    AND (rule, hash) IN (
        SELECT (n.rule, n.hash)
        FROM (SELECT unnest(from_json_strict($rows::JSON, '[{"rule": "VARCHAR", "hash": "VARCHAR"}]'), recursive := true)) n
    )
GROUP BY rule, hash, subject
