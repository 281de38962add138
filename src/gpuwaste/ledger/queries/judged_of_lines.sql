-- The runs of the picked lines in order of start, and when the newest run of each one's job began.
WITH
-- include: judged_runs
,
-- include: judged_tasks
,
keys AS MATERIALIZED (
    SELECT cluster, job_id, run_start FROM judged_lines WHERE job_id IS NOT NULL
    UNION ALL
    SELECT t.cluster, t.job_id, t.run_start
    FROM tasks t
    SEMI JOIN (SELECT cluster, array_job_id FROM judged_lines WHERE array_job_id IS NOT NULL) l USING (cluster, array_job_id)
    WHERE NOT t.again
),
newest AS (
    SELECT cluster, job_id, max(run_start) AS newest_start
    FROM runs
    SEMI JOIN keys USING (cluster, job_id)
    GROUP BY cluster, job_id
)
SELECT r.*, n.newest_start
FROM runs r
JOIN keys k ON k.cluster = r.cluster AND k.job_id = r.job_id AND k.run_start = r.run_start
JOIN newest n ON n.cluster = r.cluster AND n.job_id = r.job_id
ORDER BY r.run_start, r.job_id
