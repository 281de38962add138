-- Removes what was stored of a day.
DELETE FROM day_reasons
WHERE rules = $rules AND "day" = $day
