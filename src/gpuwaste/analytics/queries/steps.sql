-- Steps of srun that started in each step of the window and have ended; batch and interactive steps are none of srun's.
SELECT ("start" - $start) // $step AS bin, count(*) AS steps
FROM steps
WHERE "start" >= $start AND "start" < $end AND step NOT IN ('batch', 'interactive')
-- include: analytics.scope
GROUP BY bin
