-- The reservations of a cluster in [$since, $until).
SELECT name, "start", "end", nodes, flags
FROM machine_reservations
WHERE cluster = $cluster AND "start" < $until AND "end" > $since
ORDER BY "start", name
