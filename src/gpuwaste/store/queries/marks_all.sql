-- Where every importer stands.
SELECT key, value FROM marks ORDER BY key
