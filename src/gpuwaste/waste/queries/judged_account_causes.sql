-- GPU-seconds wasted by each cause, by account; of whole runs.
WITH
-- include: waste.judged_runs
SELECT account, kind, sum(wasted_s) AS wasted_s
FROM (SELECT account, unnest(cause_kinds) AS kind, unnest(cause_s) AS wasted_s FROM runs WHERE cause_kinds <> [])
GROUP BY account, kind
ORDER BY account, kind
