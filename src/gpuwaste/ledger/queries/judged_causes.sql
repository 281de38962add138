-- How many runs have each finding, its GPU-seconds, and those of the largest.
WITH
-- include: judged_runs
SELECT kind, count(*) AS runs, sum(wasted_s) AS wasted_s, max(wasted_s) AS largest_s
FROM (SELECT unnest(cause_kinds) AS kind, unnest(cause_s) AS wasted_s FROM runs WHERE cause_kinds <> [])
GROUP BY kind
