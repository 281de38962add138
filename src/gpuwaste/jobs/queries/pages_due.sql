-- The pages that were read by a version which took fewer columns from them, newest first: what is looked at most.
SELECT i.id AS import_id, i.kind, i.key, i.context, p.number, p.place, p.digest, p.position, p.until, p.line
FROM pages p
JOIN imports i ON i.id = p.import_id
WHERE p.version < $version
ORDER BY p.import_id DESC, p.number DESC
