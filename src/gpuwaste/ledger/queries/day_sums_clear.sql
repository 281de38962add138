-- Removes what was stored of a day.
DELETE FROM day_sums
WHERE rules = $rules AND "day" = $day
