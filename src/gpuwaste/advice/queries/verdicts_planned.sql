-- The plans that $user has recorded since $since_us, or that name one of the jobs $jobs of $cluster.
SELECT run_job_id, cluster = $cluster AND list_contains($jobs::BIGINT[], run_job_id) AS named
FROM verdicts
WHERE op = 'plan'
    AND "user" = $user
    AND (at_utc_us >= $since_us OR (cluster = $cluster AND list_contains($jobs::BIGINT[], run_job_id)))
