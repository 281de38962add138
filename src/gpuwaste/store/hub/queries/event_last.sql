-- The data of the newest event of a kind.
SELECT data FROM told_events WHERE kind = $kind ORDER BY seq DESC LIMIT 1
