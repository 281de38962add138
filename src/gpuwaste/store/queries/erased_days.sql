-- Moves the days of the runs in temp table erased_runs to the part of the user $erased.
UPDATE days d
SET part = r.part
FROM (
    SELECT cluster, job_id, run_start,
-- include: day_part
    FROM (SELECT *, $erased AS "user" FROM erased_runs)
) r
WHERE d.cluster = r.cluster AND d.job_id = r.job_id AND d.run_start = r.run_start AND d.part <> r.part
