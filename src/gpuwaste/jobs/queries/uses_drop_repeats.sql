-- Leaves one row of each GPU of a run: windows that follow each other both list the runs that overlap both.
DELETE FROM accounted_use
WHERE rowid NOT IN (
    SELECT max_by(rowid, coalesce(peak_pct, 0))
    FROM accounted_use
    GROUP BY cluster, job_id, run_start, source, node, gpu
)
