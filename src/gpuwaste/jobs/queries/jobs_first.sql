-- When the earliest run began.
SELECT min(run_start) AS first FROM jobs
