-- Drops submissions that wait where the run that came of them is known: a window that was read earlier lists them.
DELETE FROM jobs w
USING jobs j
WHERE w."start" IS NULL
    AND w."end" IS NULL
    AND j.cluster = w.cluster
    AND j.job_id = w.job_id
    AND j.submit = w.submit
    AND (j."start" IS NOT NULL OR j."end" IS NOT NULL)
