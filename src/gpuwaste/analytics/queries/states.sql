-- Runs that ended in the window, by user and account and end state.
SELECT
    "user",
    account,
-- include: analytics.state_sums
FROM (
    SELECT "user", account, state, count(*) AS n
    FROM jobs
    WHERE "end" >= $start AND "end" < $end
-- include: analytics.scope
    GROUP BY ALL
)
GROUP BY "user", account
ORDER BY ended DESC, "user", account
