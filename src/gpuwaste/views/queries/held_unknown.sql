-- Runs that held something in the window, and of how many of them the GPUs or the CPUs are not known.
SELECT count(*) AS runs, count(*) - count(gpus) AS gpu, count(*) - count(cpus) AS cpu
FROM jobs
WHERE "start" < $end AND coalesce("end", $now) > greatest("start", $start)
-- include: scope
