-- The GPUs of the runs that a report covers.
WITH runs AS (
    SELECT j.cluster, j.job_id, j.run_start
    FROM jobs j
    WHERE
-- include: ledger_scope
),
-- include: ledger_device_sums
