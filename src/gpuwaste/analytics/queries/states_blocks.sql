-- Runs that ended in each block of days, by end state.
SELECT
    block,
-- include: analytics.state_sums
FROM (
    SELECT ("end" - $start) // $block AS block, state, count(*) AS n
    FROM jobs
    WHERE "end" >= $start AND "end" < $end
-- include: analytics.scope
    GROUP BY ALL
)
GROUP BY block
ORDER BY block
