-- The events that outlets could not hand over last, the newest first.
SELECT outlet, seq, id, kind, reason, at_utc FROM dead_letters ORDER BY seq DESC, outlet LIMIT $limit
