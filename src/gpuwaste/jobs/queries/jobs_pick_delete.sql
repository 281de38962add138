-- Removes what jobs_pick picks.
DELETE FROM jobs
WHERE run_start >= $from_s
    AND run_start < $to_s
    AND "end" IS NOT NULL
    AND "user" BETWEEN $first AND $last
