-- What is told of the JSON array $rows that $since and later have not told.
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "no": "BIGINT", "kind": "VARCHAR", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT",
        "at_utc": "BIGINT", "id": "VARCHAR", "subject": "VARCHAR", "data": "VARCHAR"
    }]'), recursive := true)
) n
ANTI JOIN (SELECT id FROM told_events WHERE at_utc >= $since) known USING (id)
QUALIFY row_number() OVER (PARTITION BY id ORDER BY no) = 1
