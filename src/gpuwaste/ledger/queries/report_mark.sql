-- One mark's value.
SELECT value FROM marks WHERE key = $key
