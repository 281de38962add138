-- The runs that were judged last, in their order.
SELECT cluster, job_id, run_start, "end" FROM ledger_rows ORDER BY place
