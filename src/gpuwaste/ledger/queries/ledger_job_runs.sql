-- Picks the runs of the job with this printed id (7, 3_1, 4+1), or with this number as job, array or het job, in the
-- scope of who asks (as in ledger_scope): what is not theirs to see is not loaded, so it takes as long as what is not there.
-- A printed id begins with $first, one of these numbers: each is looked up by itself, so that blocks are skipped by its
-- minima and maxima, which those of texts and of an OR do not allow.
CREATE OR REPLACE TEMP TABLE picked_runs AS
WITH numbered AS (
    SELECT * FROM jobs WHERE job_id = $first
    UNION ALL
    SELECT * FROM jobs WHERE array_job_id = $first AND job_id <> $first
    UNION ALL
    SELECT * FROM jobs WHERE het_job_id = $first AND job_id <> $first AND array_job_id IS DISTINCT FROM $first
)
SELECT
    j.*,
-- include: day_part
    ,
    coalesce(p.whole_node, false) AS whole_node,
    row_number() OVER (ORDER BY j.array_task_id, j.het_offset, j.submit, j.run_start) AS place
FROM numbered j
LEFT JOIN partitions p ON p.cluster = j.cluster AND p.name = j."partition"
WHERE
    ($number OR j.printed_id = $printed_id)
    AND (
        $accounts IS NULL
        OR list_contains(
            $accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': j.cluster, 'account': j.account}
        )
        OR j."user" = $reader
    )
