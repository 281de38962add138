-- Adds the firings of the JSON array $rows; those of an id that is known are left out.
INSERT INTO rule_firings BY NAME
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "id": "VARCHAR", "at_utc": "BIGINT", "rule": "VARCHAR", "hash": "VARCHAR", "mode": "VARCHAR", "step": "BIGINT",
        "action": "VARCHAR", "done": "BOOLEAN", "cluster": "VARCHAR", "subject": "VARCHAR", "job_id": "BIGINT",
        "run_start": "BIGINT", "user": "VARCHAR", "account": "VARCHAR", "facts": "VARCHAR", "campaign": "VARCHAR"
    }]'), recursive := true)
) n
ANTI JOIN rule_firings known USING (id)
