-- The runs that ledger_runs or ledger_job_runs picked on this connection, in the order that it gave.
SELECT *
FROM picked_runs
ORDER BY place
