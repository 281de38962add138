-- The actions of the JSON array $rows whose id is not known.
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "id": "VARCHAR", "rule": "VARCHAR", "rule_hash": "VARCHAR", "kind": "VARCHAR", "subject": "VARCHAR",
        "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "user": "VARCHAR", "account": "VARCHAR",
        "options": "VARCHAR", "facts": "VARCHAR", "approve": "VARCHAR", "decided_utc": "BIGINT",
        "expires_utc": "BIGINT", "status": "VARCHAR", "status_utc": "BIGINT", "person": "VARCHAR",
        "person_utc": "BIGINT", "plan": "VARCHAR", "sends": "BIGINT", "sent_utc": "BIGINT", "reason": "VARCHAR",
        "answer": "VARCHAR"
    }]'), recursive := true)
) n
ANTI JOIN actions known USING (id)
QUALIFY row_number() OVER (PARTITION BY n.id) = 1
