-- Removes a cluster's blocking runs of hours in [$since, $until) from the balance.
DELETE FROM balance_blockers WHERE cluster = $cluster AND hour_utc >= $since AND hour_utc < $until
