-- Picks the runs of the job with this printed id (7, 3_1, 4+1), or with this number as job, array or het job, in the
-- scope of who asks (as in ledger_scope): what is not theirs to see is not loaded, so it takes as long as what is not there.
CREATE OR REPLACE TEMP TABLE picked_runs AS
SELECT
    j.*,
    coalesce(p.whole_node, false) AS whole_node,
    row_number() OVER (ORDER BY j.array_task_id, j.het_offset, j.submit, j.run_start) AS place
FROM jobs j
LEFT JOIN partitions p ON p.cluster = j.cluster AND p.name = j."partition"
WHERE
    ($printed_id = j.printed_id OR j.job_id = $number OR j.array_job_id = $number OR j.het_job_id = $number)
    AND ($accounts IS NULL OR list_contains($accounts::VARCHAR[], j.account) OR j."user" = $reader)
