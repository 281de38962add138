-- Removes the outages of a cluster that ended after $since or continue.
DELETE FROM machine_outages WHERE cluster = $cluster AND ("end" IS NULL OR "end" > $since)
