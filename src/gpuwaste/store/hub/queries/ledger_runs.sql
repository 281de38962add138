-- Runs that held GPUs (or reported any) and overlap [from_s, to_s), in the scope asked for; NULL is "any".
SELECT j.*, coalesce(p.whole_node, false) AS whole_node
FROM jobs j
LEFT JOIN partitions p ON p.cluster = j.cluster AND p.name = j."partition"
WHERE j."start" IS NOT NULL
    AND j."start" < $to_s
    AND (j."end" IS NULL OR j."end" > $from_s)
    AND ($user IS NULL OR j."user" = $user)
    AND ($account IS NULL OR j.account = $account)
    AND ($cluster IS NULL OR j.cluster = $cluster)
    AND ($accounts IS NULL OR list_contains($accounts::VARCHAR[], j.account) OR j."user" = $reader)
    AND ($running_only = false OR j."end" IS NULL)
    AND (
        j.gpus > 0
        OR contains(j.alloc_tres, 'gres/shard')
        OR contains(j.alloc_tres, 'gres/mps')
        OR (j.cluster, j.job_id, j.run_start) IN (SELECT (cluster, job_id, run_start) FROM hours WHERE share < 1)
        OR (j.cluster, j.job_id, j.run_start) IN (SELECT (cluster, job_id, run_start) FROM days WHERE share < 1)
    )
ORDER BY j.run_start, j.job_id
