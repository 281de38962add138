-- Verdicts that predicted the run time of a run that ended in the window: median and 90th percentile against the real
-- one. A run that reached its limit shows the limit: it would have run longer.
SELECT
    block,
    count(*) AS runs,
    count(*) FILTER (elapsed <= q90) AS below_q90,
    count(*) FILTER (elapsed <= q50) AS below_q50,
    sum(abs(elapsed - q50)) AS miss_s,
    sum(elapsed)::BIGINT AS elapsed_s
FROM predicted
GROUP BY block
ORDER BY block
