CREATE OR REPLACE TEMP TABLE touched_runs AS
SELECT unnest(from_json_strict($runs::JSON, '[{"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'),
    recursive := true)
;
CREATE OR REPLACE TEMP TABLE forgotten AS
SELECT r."end"
FROM judged r
SEMI JOIN touched_runs USING (cluster, job_id, run_start)
WHERE r."end" >= $lo - 86400
;
DELETE FROM judged r
USING touched_runs n
WHERE r."end" >= $lo - 86400 AND r.cluster = n.cluster AND r.job_id = n.job_id AND r.run_start = n.run_start
;
SELECT "end" FROM forgotten
