-- What the parser counted in the pages of one source, each place of it once.
SELECT notes, runs
FROM pages
WHERE key = $key
QUALIFY row_number() OVER (PARTITION BY place, position ORDER BY import_id DESC, number DESC) = 1
