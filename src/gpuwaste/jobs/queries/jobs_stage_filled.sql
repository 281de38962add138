-- Keeps in the scratch table the runs of which the store holds the same end: of another run, or of the same one at an
-- earlier time, an old page tells nothing.
DELETE FROM staged_jobs s
WHERE NOT EXISTS (
    FROM known_jobs k
    WHERE k.cluster = s.cluster
        AND k.job_id = s.job_id
        AND k.run_start = s.run_start
        AND k."end" IS NOT DISTINCT FROM s."end"
)
