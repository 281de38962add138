-- The lake has no sequences: the one writer numbers the events.
INSERT INTO events (seq, kind, cluster, job_id, run_start, at_utc)
SELECT
-- include: event_seq
    + row_number() OVER (), kind, cluster, job_id, run_start, at_utc
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "kind": "VARCHAR", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "at_utc": "BIGINT"
    }]'), recursive := true)
)
