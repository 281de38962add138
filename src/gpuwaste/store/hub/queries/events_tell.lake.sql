CREATE OR REPLACE TEMP TABLE new_events AS
SELECT
-- include: event_seq
    + row_number() OVER (ORDER BY no) AS seq, kind, cluster, job_id, run_start, at_utc, id, subject, data
FROM (
    SELECT *
    FROM (
        SELECT unnest(from_json_strict($rows::JSON, '[{
            "no": "BIGINT", "kind": "VARCHAR", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT",
            "at_utc": "BIGINT", "id": "VARCHAR", "subject": "VARCHAR", "data": "VARCHAR"
        }]'), recursive := true)
    ) n
    ANTI JOIN (SELECT id FROM told_events WHERE at_utc >= $since) known USING (id)
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY no) = 1
)
;
INSERT INTO told_events BY NAME SELECT * FROM new_events
;
SELECT id FROM new_events ORDER BY seq
