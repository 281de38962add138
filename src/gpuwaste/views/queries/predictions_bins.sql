-- Predicted median against real run time: bins, 8 in each decade of seconds.
SELECT
    floor(log10(greatest(q50, 1)) * 8)::INTEGER AS x,
    floor(log10(greatest(elapsed, 1)) * 8)::INTEGER AS y,
    count(*) AS runs
FROM predicted
GROUP BY ALL
ORDER BY ALL
