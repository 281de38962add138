-- The days with stored sums all of whose runs count in full between $from_s and $to_s, the last first.
SELECT "day"
FROM summed_days
WHERE rules = $rules AND "day" > $from_s AND "day" + 86400 <= $to_s AND (NOT $cut OR first_start >= $from_s)
ORDER BY "day" DESC
