-- Keeps in the scratch table the rows of runs that the store holds.
DELETE FROM staged_uses s
WHERE NOT EXISTS (FROM known_jobs k WHERE k.cluster = s.cluster AND k.job_id = s.job_id AND k.run_start = s.run_start)
