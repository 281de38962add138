-- The outages of a cluster in [$since, $until).
SELECT node, "start", "end", state
FROM machine_outages
WHERE cluster = $cluster AND "start" < $until AND ("end" IS NULL OR "end" > $since)
ORDER BY node, "start"
