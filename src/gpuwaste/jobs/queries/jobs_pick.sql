-- Picks the ended runs of the users $first to $last that began from $from_s to before $to_s.
CREATE OR REPLACE TEMP TABLE jobs_picked AS
SELECT *
FROM jobs
WHERE run_start >= $from_s
    AND run_start < $to_s
    AND "end" IS NOT NULL
    AND "user" BETWEEN $first AND $last
