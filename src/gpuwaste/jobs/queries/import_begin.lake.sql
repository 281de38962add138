CREATE OR REPLACE TEMP TABLE begun_import AS SELECT coalesce(max(id), 0) + 1 AS id FROM imports
;
INSERT INTO imports (id, kind, key, cluster, context, began_utc)
SELECT id, $kind, $key, $cluster, $context, $now FROM begun_import
;
SELECT id FROM begun_import
