-- Moves what was added up of runs whose user accounting tells anew to that user's part.
UPDATE days d
SET part = c.part
FROM (
    SELECT c.cluster, c.job_id, c.run_start,
-- include: day_part
    FROM changed_jobs c
) c
WHERE d.cluster = c.cluster AND d.job_id = c.job_id AND d.run_start = c.run_start AND d.part <> c.part
