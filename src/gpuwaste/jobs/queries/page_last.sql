-- The newest page of a source, with the context in which it was read.
SELECT p.position, p.until, p.digest, p.line, p.number, i.context, i.ended_utc
FROM pages p
JOIN imports i ON i.id = p.import_id
WHERE p.key = $key
ORDER BY p.import_id DESC, p.number DESC
LIMIT 1
