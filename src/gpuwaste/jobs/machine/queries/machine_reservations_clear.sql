-- Removes the reservations of a cluster that end after $since.
DELETE FROM machine_reservations WHERE cluster = $cluster AND "end" > $since
