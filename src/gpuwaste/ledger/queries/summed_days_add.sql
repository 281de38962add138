-- Notes that the sums of a day are stored.
INSERT INTO summed_days
SELECT $rules, $day, coalesce(min(run_start), $day)
FROM judged
WHERE rules = $rules AND "end" >= $day AND "end" < $day + 86400
