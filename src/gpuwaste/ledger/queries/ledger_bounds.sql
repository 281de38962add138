-- When the first of the picked runs began and the last ended; no row where none is picked.
SELECT min(run_start) AS first, max(coalesce("end", $now)) AS last FROM picked_runs HAVING count(*) > 0
