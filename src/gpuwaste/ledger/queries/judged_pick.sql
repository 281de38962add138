-- Picks the judged runs of the users $first to $last that ended from $from_s to before $to_s, with where they stand.
CREATE OR REPLACE TEMP TABLE judged_picked AS
SELECT
    *,
    rowid AS stood
FROM judged
WHERE "end" >= $from_s
    AND "end" < $to_s
    AND "user" BETWEEN $first AND $last
