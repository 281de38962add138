-- How the end of a cluster's runs is known, as its newest import said; no row where the hub itself read accounting.
SELECT end_rule
FROM imports
WHERE cluster = $cluster AND ended_utc IS NOT NULL AND end_rule IS NOT NULL
ORDER BY id DESC
LIMIT 1
