-- Takes out of the scratch table what the store knows better: a run that has not ended there where the store holds its
-- end, and a submission that waits there where the store holds its run. Pages are read again in any order, and must not
-- turn time back.
DELETE FROM staged_jobs s
USING jobs j
WHERE s."end" IS NULL
    AND j.cluster = s.cluster
    AND j.job_id = s.job_id
    AND j.submit = s.submit
    AND (
        (j.run_start = s.run_start AND j."end" IS NOT NULL)
        OR (s."start" IS NULL AND (j."start" IS NOT NULL OR j."end" IS NOT NULL))
    )
