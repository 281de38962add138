-- The events that inlets keep aside, the newest first.
SELECT inlet, at_utc, sent_id, kind, reason, raw FROM inlet_quarantine ORDER BY at_utc DESC, rowid DESC LIMIT $limit
