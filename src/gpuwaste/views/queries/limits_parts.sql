-- Runs that ended in the window, by the part of their time limit that they used, in percent; 101 and more: beyond it.
SELECT part, sum(runs)::BIGINT AS runs
FROM (
-- days: limits_parts_days
)
GROUP BY part
ORDER BY part
