-- The clusters whose newest import is of the Standard Workload Format: it has completed, failed and cancelled jobs, and
-- no word for a time limit that was reached, a failed node, a task of an array or an interactive job.
SELECT cluster
FROM (
    SELECT cluster, max_by(kind, id) AS kind
    FROM imports
    WHERE ended_utc IS NOT NULL
-- include: scope
    GROUP BY cluster
)
WHERE kind = 'swf'
ORDER BY cluster
