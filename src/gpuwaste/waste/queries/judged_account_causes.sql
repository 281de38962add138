-- GPU-seconds wasted by each cause, by account; of whole runs.
WITH
-- include: waste.judged_held
SELECT account, kind, sum(wasted_s) AS wasted_s
FROM (SELECT account, unnest(cause_kinds) AS kind, unnest(cause_s) AS wasted_s FROM held WHERE len(cause_kinds) > 0)
GROUP BY account, kind
ORDER BY account, kind
