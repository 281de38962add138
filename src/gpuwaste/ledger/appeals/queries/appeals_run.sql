-- The first run of an appeal; nothing where it is about none.
SELECT cluster, job_id, run_start
FROM appeals
WHERE id = $id AND job_id <> 0
ORDER BY run_start, cluster, job_id
LIMIT 1
