-- Who holds the lease.
SELECT holder, until_utc FROM actor_lease WHERE name = $name
