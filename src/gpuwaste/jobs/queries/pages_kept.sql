-- Every page with what its parser needs, in the order in which they were read first.
SELECT i.id AS import_id, i.kind, i.key, i.context, p.number, p.place, p.digest, p.position, p.until, p.line
FROM pages p
JOIN imports i ON i.id = p.import_id
ORDER BY p.import_id, p.number
