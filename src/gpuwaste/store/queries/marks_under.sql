-- The marks whose keys begin with $prefix.
SELECT key, value FROM marks WHERE starts_with(key, $prefix) ORDER BY key
