-- Runs of a cluster that accounting has not ended.
SELECT job_id, run_start, submit FROM jobs WHERE cluster = $cluster AND "end" IS NULL
