-- How many rows each table holds, and the newest event.
SELECT
    (SELECT count(*) FROM jobs) AS jobs,
    (SELECT count(*) FROM hours) AS hours,
    (SELECT count(*) FROM days) AS days,
    (SELECT count(*) FROM events) AS events,
    (SELECT count(*) FROM quarantine) AS quarantine,
    (SELECT count(*) FROM verdicts) AS verdicts,
    (SELECT coalesce(max(seq), 0) FROM events) AS last_event
