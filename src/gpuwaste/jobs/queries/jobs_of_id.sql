-- The runs of one job id, the newest first.
SELECT * FROM jobs WHERE cluster = $cluster AND job_id = $job_id ORDER BY run_start DESC
