-- Steps of srun that started in each step of the window and have ended: their names are numbers, those of batch and
-- interactive ones are words.
SELECT ("start" - $start) // $step AS bin, count(*) AS steps
FROM steps
WHERE "start" >= $start AND "start" < $end AND step < 'a'
-- include: scope
GROUP BY bin
