-- The $limit findings with the largest waste: the run, its findings, and which of them. Texts are read of these alone.
WITH
-- include: judged_runs
,
worst AS MATERIALIZED (
    SELECT cluster, job_id, run_start, kind, wasted_s, place
    FROM (
        SELECT
            cluster, job_id, run_start, unnest(cause_kinds) AS kind, unnest(cause_s) AS wasted_s,
            unnest(range(len(cause_kinds))) AS place
        FROM runs
        WHERE cause_kinds <> []
    )
    ORDER BY wasted_s DESC, kind, cluster, job_id, run_start
    LIMIT $limit
)
SELECT r.printed_id, r.causes, w.place
FROM worst w
JOIN runs r ON r.cluster = w.cluster AND r.job_id = w.job_id AND r.run_start = w.run_start
ORDER BY w.wasted_s DESC, w.kind, w.cluster, w.job_id, w.run_start
