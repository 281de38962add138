-- Removes a cluster's hours in [$since, $until) from the balance.
DELETE FROM balance_hours WHERE cluster = $cluster AND hour_utc >= $since AND hour_utc < $until
