CREATE OR REPLACE TEMP TABLE new_events AS
SELECT
-- include: event_seq
    + row_number() OVER (ORDER BY no) AS seq, kind, cluster, job_id, run_start, at_utc, id, subject, data
FROM (
    SELECT *
-- include: events_sent
)
;
INSERT INTO told_events BY NAME SELECT * FROM new_events
;
SELECT id FROM new_events ORDER BY seq
