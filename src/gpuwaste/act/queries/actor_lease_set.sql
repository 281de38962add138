-- Gives the lease.
MERGE INTO actor_lease l
USING (SELECT $name AS name, $holder AS holder, $until AS until_utc) n
ON l.name = n.name
WHEN MATCHED THEN UPDATE SET holder = n.holder, until_utc = n.until_utc
WHEN NOT MATCHED THEN INSERT BY NAME
