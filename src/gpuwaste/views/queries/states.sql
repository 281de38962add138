-- Runs that ended in the window, by user and account and end state.
SELECT
    "user",
    account,
-- include: state_sums
FROM (
-- days: states_days
)
GROUP BY "user", account
ORDER BY ended DESC, "user", account
