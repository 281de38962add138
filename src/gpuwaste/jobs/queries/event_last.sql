-- The data of the newest event of the kinds $kinds.
SELECT data FROM told_events WHERE list_contains($kinds::VARCHAR[], kind) ORDER BY seq DESC LIMIT 1
