-- Runs of the store by cluster, month of submission (UTC) and state.
SELECT cluster, strftime(make_timestamp(submit * 1000000), '%Y-%m') AS month, state, count(*) AS runs
FROM jobs
GROUP BY ALL
ORDER BY ALL
