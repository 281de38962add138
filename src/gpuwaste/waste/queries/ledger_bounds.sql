-- When the first of the picked runs began and the last ended.
SELECT min(run_start) AS first, max(coalesce("end", $now)) AS last FROM picked_runs
