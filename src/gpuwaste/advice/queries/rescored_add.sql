-- Adds what was said of running jobs, of the JSON array $rows; what was said before is left out.
INSERT INTO rescored BY NAME
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, $shape), recursive := true)
) n
ANTI JOIN rescored r USING (cluster, job_id, run_start, moment)
RETURNING job_id
