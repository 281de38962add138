-- The GPUs of every run of one job, as a printed or a raw id names it.
WITH runs AS (
    SELECT cluster, job_id, run_start
    FROM jobs
    WHERE "start" IS NOT NULL
        AND ($printed_id = printed_id OR job_id = $number OR array_job_id = $number OR het_job_id = $number)
),
-- include: ledger_device_sums
