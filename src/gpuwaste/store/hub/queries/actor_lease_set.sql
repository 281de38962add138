-- Gives the lease.
INSERT OR REPLACE INTO actor_lease VALUES ($name, $holder, $until)
