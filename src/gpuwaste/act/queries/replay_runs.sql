-- How many runs with GPUs overlap a window.
SELECT count(*) AS runs
FROM jobs
WHERE cluster = $cluster AND gpus > 0 AND "start" IS NOT NULL AND run_start < $to AND coalesce("end", $to) > $from
