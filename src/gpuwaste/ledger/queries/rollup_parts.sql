-- The last job of each part of the final hours of the UTC day $day, about $step_hours of them in each.
SELECT DISTINCT max(job_id) AS to_job
FROM (
    SELECT job_id, (row_number() OVER (ORDER BY job_id) - 1) // $step_hours AS part
    FROM hours
    WHERE final AND hour_utc >= $day AND hour_utc < $day + 86400
)
GROUP BY part
ORDER BY to_job
