-- Removes what judged_pick picks.
DELETE FROM judged
WHERE "end" >= $from_s
    AND "end" < $to_s
    AND "user" BETWEEN $first AND $last
