-- The $limit findings with the largest waste: the run, its findings, and which of them.
WITH
-- include: waste.judged_runs
SELECT printed_id, causes, place
FROM (
    SELECT
        cluster, job_id, run_start, printed_id, causes, unnest(cause_kinds) AS kind, unnest(cause_s) AS wasted_s,
        unnest(range(len(cause_kinds))) AS place
    FROM runs
    WHERE cause_kinds <> []
)
ORDER BY wasted_s DESC, kind, cluster, job_id, run_start
LIMIT $limit
