-- The lake's MERGE has one UPDATE at most and returns nothing: the winners are found first, then they take the place of
-- what is there.
CREATE OR REPLACE TEMP TABLE sent_hours AS
SELECT unnest(from_json_strict($rows::JSON, $shape), recursive := true)
;
CREATE OR REPLACE TEMP TABLE known_hours AS
SELECT h.*
FROM hours h
SEMI JOIN sent_hours USING (cluster, job_id, run_start, node, gpu_uuid, hour_utc)
WHERE h.hour_utc BETWEEN $lo AND $hi
;
CREATE OR REPLACE TEMP TABLE changed_hours AS
SELECT s.* REPLACE (s.final OR coalesce(h.final, false) AS final)
FROM sent_hours s
LEFT JOIN known_hours h USING (cluster, job_id, run_start, node, gpu_uuid, hour_utc)
WHERE h.seq IS NULL OR s.seq > h.seq
UNION ALL BY NAME
SELECT h.* REPLACE (true AS final)
FROM known_hours h
JOIN sent_hours s USING (cluster, job_id, run_start, node, gpu_uuid, hour_utc)
WHERE s.seq <= h.seq AND s.final AND NOT h.final
;
DELETE FROM hours h
USING changed_hours c
WHERE h.hour_utc BETWEEN $lo AND $hi
    AND h.cluster = c.cluster AND h.job_id = c.job_id AND h.run_start = c.run_start
    AND h.node = c.node AND h.gpu_uuid = c.gpu_uuid AND h.hour_utc = c.hour_utc
;
INSERT INTO hours BY NAME SELECT * FROM changed_hours
;
SELECT cluster, job_id, run_start, final FROM changed_hours
