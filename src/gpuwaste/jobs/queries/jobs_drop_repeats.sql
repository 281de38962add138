-- Leaves one row of each run, the one that tells most of it. Windows that follow each other both list the runs that
-- overlap both, as they were when each was read.
DELETE FROM jobs
WHERE rowid NOT IN (
    SELECT max_by(rowid, coalesce("end", 0))
    FROM jobs
    GROUP BY cluster, job_id, run_start
)
