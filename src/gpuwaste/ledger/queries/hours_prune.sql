-- Removes hours before $before of runs that accounting does not have.
DELETE FROM hours h
WHERE h.hour_utc < $before
    AND NOT EXISTS (
        SELECT 1 FROM jobs j WHERE j.cluster = h.cluster AND j.job_id = h.job_id AND j.run_start = h.run_start
    )
