-- The job name of the largest waste between the edges of the window.
WITH
-- include: judged_runs
,
-- include: judged_window
SELECT name, count(*) AS jobs, sum(own.alloc_ms)::BIGINT AS alloc_ms, sum(own.wasted_ms)::BIGINT AS wasted_ms
FROM parts
GROUP BY name
ORDER BY wasted_ms DESC, alloc_ms DESC, name
LIMIT 1
