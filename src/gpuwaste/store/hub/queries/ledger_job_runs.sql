-- Picks the runs of the job with this printed id (7, 3_1, 4+1), or with this number as job, array or het job.
CREATE OR REPLACE TEMP TABLE picked_runs AS
SELECT
    j.*,
    coalesce(p.whole_node, false) AS whole_node,
    row_number() OVER (ORDER BY j.array_task_id, j.het_offset, j.submit, j.run_start) AS place
FROM jobs j
LEFT JOIN partitions p ON p.cluster = j.cluster AND p.name = j."partition"
WHERE $printed_id = j.printed_id OR j.job_id = $number OR j.array_job_id = $number OR j.het_job_id = $number
