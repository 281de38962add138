-- The verdicts of the ids $ids, and of modifications of the jobs $jobs of $cluster, the oldest first.
SELECT id, run_job_id, at_utc_us, op, policy, mode, action, would_be, held, "user", account, lines, p, quantiles
FROM verdicts
WHERE id BETWEEN list_min($ids::VARCHAR[]) AND list_max($ids::VARCHAR[]) AND list_contains($ids::VARCHAR[], id)
UNION
SELECT id, run_job_id, at_utc_us, op, policy, mode, action, would_be, held, "user", account, lines, p, quantiles
FROM verdicts
WHERE run_job_id IS NOT NULL AND cluster = $cluster AND list_contains($jobs::BIGINT[], run_job_id)
ORDER BY at_utc_us, id
