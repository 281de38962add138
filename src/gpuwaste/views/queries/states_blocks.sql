-- Runs that ended in each block of days, by end state.
SELECT
    block,
-- include: state_sums
FROM (
    SELECT (since - $start) // $block AS block, state, n
    FROM (
-- days: ends_days
    )
)
GROUP BY block
ORDER BY block
