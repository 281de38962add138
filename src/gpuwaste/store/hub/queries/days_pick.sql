-- Picks the days from $from_day to before $to_day of the parts $from_part to $to_part.
CREATE OR REPLACE TEMP TABLE days_picked AS
SELECT *
FROM days
WHERE day_utc >= $from_day
    AND day_utc < $to_day
    AND part BETWEEN $from_part AND $to_part
