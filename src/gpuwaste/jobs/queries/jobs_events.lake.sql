INSERT INTO events (seq, kind, cluster, job_id, run_start, at_utc)
SELECT
-- include: event_seq
    + row_number() OVER (ORDER BY at_utc, kind DESC, job_id), kind, cluster, job_id, run_start, at_utc
-- include: jobs_told
