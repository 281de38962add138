-- Forgets the sums of the day of $end and of those after it.
DELETE FROM summed_days
WHERE "day" > $end - 86400
