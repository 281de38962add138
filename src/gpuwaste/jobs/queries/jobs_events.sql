-- Appends what an import tells anew: runs that wait, that have started, that have ended, in the order of time.
INSERT INTO events (kind, cluster, job_id, run_start, at_utc)
SELECT kind, cluster, job_id, run_start, at_utc
-- include: jobs_told
ORDER BY at_utc, kind DESC, job_id
