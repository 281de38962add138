-- Appends events that carry their data, of the JSON array $rows in its order; those of an id that $since and later have
-- told are left out. Returns the ids that are new.
INSERT INTO told_events (kind, cluster, job_id, run_start, at_utc, id, subject, data)
SELECT kind, cluster, job_id, run_start, at_utc, id, subject, data
-- include: events_sent
ORDER BY no
RETURNING id
