-- Picks the judged runs of the users $first to $last that ended from $from_s to before $to_s.
CREATE OR REPLACE TEMP TABLE judged_picked AS
SELECT *
FROM judged
WHERE "end" >= $from_s
    AND "end" < $to_s
    AND "user" BETWEEN $first AND $last
