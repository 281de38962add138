-- Leaves one row of each run: one with an end, and of these the last. Windows that follow each other both list the runs
-- that overlap both.
DELETE FROM jobs
WHERE rowid NOT IN (
    SELECT max_by(rowid, rowid + CASE WHEN "end" IS NULL THEN 0 ELSE 1000000000000 END)
    FROM jobs
    GROUP BY cluster, job_id, run_start
)
