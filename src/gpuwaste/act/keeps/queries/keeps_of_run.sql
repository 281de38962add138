-- The keep of a run that is active at $now, or continues one that is, and ends last.
SELECT *
FROM keeps
WHERE cluster = $cluster AND job_id = $job_id AND run_start = $run_start AND at_utc <= $now AND until_utc > $now
ORDER BY until_utc DESC, id
LIMIT 1
