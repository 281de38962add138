-- The runs that have ended and of whose use accounting has something new, with their ends; not those that are new or
-- changed themselves: these are judged and told anyway.
SELECT cluster, job_id, run_start, "end"
FROM jobs
SEMI JOIN changed_uses USING (cluster, job_id, run_start)
ANTI JOIN changed_jobs USING (cluster, job_id, run_start)
WHERE "end" IS NOT NULL
