CREATE OR REPLACE TEMP TABLE new_rescored AS
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, $shape), recursive := true)
) n
ANTI JOIN rescored r USING (cluster, job_id, run_start, moment)
;
INSERT INTO rescored BY NAME SELECT * FROM new_rescored
;
SELECT job_id FROM new_rescored
