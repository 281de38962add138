-- Priority against wait of the runs that started in the window: bins, 8 in each decade; a wait of 0 has bin -1.
SELECT x, y, count(*) AS runs
FROM (
    SELECT
        (ln(greatest(priority, 1)) * 3.4743558552260146 - 0.499999999)::INTEGER AS x,
        CASE WHEN held <= 0 THEN -1 ELSE
-- include: analytics.time_bin
        END AS y
    FROM (
        SELECT priority, "start" - submit AS held
        FROM jobs
        WHERE "start" >= $start AND "start" < $end AND priority IS NOT NULL
-- include: analytics.scope
    )
)
GROUP BY ALL
ORDER BY ALL
