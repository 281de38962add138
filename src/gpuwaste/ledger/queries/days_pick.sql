-- Picks the days from $from_s to before $to_s of the parts $first to $last.
CREATE OR REPLACE TEMP TABLE days_picked AS
SELECT *
FROM days
WHERE day_utc >= $from_s
    AND day_utc < $to_s
    AND part BETWEEN $first AND $last
