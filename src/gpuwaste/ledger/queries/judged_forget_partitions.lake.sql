CREATE OR REPLACE TEMP TABLE changed_partitions AS
-- include: partitions_changed
;
CREATE OR REPLACE TEMP TABLE forgotten AS
SELECT r."end"
FROM judged r
WHERE r.cluster = $cluster AND r."partition" IN (SELECT name FROM changed_partitions)
;
DELETE FROM judged r
USING changed_partitions c
WHERE r.cluster = $cluster AND r."partition" = c.name
;
SELECT "end" FROM forgotten
