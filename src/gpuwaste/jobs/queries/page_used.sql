-- Whether an import has taken the page with that digest.
SELECT 1 AS used FROM pages WHERE digest = $digest LIMIT 1
