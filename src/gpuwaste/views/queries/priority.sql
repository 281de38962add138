-- Priority against wait of the runs that started in the window: bins, 8 in each decade; a wait of 0 has bin -1.
SELECT x, y, sum(runs)::BIGINT AS runs
FROM (
-- days: priority_days
)
GROUP BY ALL
ORDER BY ALL
