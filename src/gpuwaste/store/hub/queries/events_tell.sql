-- Appends events that carry their data, of the JSON array $rows in its order; those of an id that $since and later have
-- told are left out. Returns the ids that are new.
INSERT INTO told_events (kind, cluster, job_id, run_start, at_utc, id, subject, data)
SELECT kind, cluster, job_id, run_start, at_utc, id, subject, data
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "no": "BIGINT", "kind": "VARCHAR", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT",
        "at_utc": "BIGINT", "id": "VARCHAR", "subject": "VARCHAR", "data": "VARCHAR"
    }]'), recursive := true)
) n
ANTI JOIN (SELECT id FROM told_events WHERE at_utc >= $since) known USING (id)
QUALIFY row_number() OVER (PARTITION BY id ORDER BY no) = 1
ORDER BY no
RETURNING id
