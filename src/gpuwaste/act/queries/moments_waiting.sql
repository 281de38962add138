-- The waiting jobs of a cluster, at one instant.
INSERT INTO moments BY NAME
SELECT row_number() OVER (ORDER BY run_start, job_id) - 1 AS place, cluster, job_id, run_start, $now AS at_utc
FROM jobs
WHERE cluster = $cluster AND state = 'PENDING' AND "start" IS NULL AND "end" IS NULL
