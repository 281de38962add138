-- Notes that an import begins.
INSERT INTO imports (id, kind, key, cluster, context, began_utc)
SELECT coalesce(max(id), 0) + 1, $kind, $key, $cluster, $context, $now FROM imports
RETURNING id
