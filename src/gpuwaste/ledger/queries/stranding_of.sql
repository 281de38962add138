-- Ended runs that kept GPUs from jobs that waited in [from_s, to_s), in the scope asked for, with what they used; NULL is
-- "any".
WITH kept AS (
    SELECT cluster, job_id, run_start, class, sum(gpu_s)::BIGINT AS gpu_s, list(DISTINCT node ORDER BY node)[:256] AS nodes
    FROM balance_blockers
    WHERE hour_utc >= $from_s - 3599 AND hour_utc < $to_s
        AND ($clusters IS NULL OR list_contains($clusters::VARCHAR[], cluster))
    GROUP BY ALL
), used AS (
    SELECT s.cluster, s.job_id, s.run_start, max(s.max_rss_b * greatest(coalesce(s.tasks, 1), 1))::BIGINT AS used_b
    FROM steps s
    SEMI JOIN kept k USING (cluster, job_id, run_start)
    GROUP BY ALL
)
SELECT
    k.class, k.gpu_s, k.nodes AS on_nodes, coalesce(u.used_b, j.max_rss_b) AS used_b, j.cluster, j.job_id, j.submit,
    j.printed_id, j.name, j."user", j."start", j."end", j.n_nodes, j.cpus, j.gpus, j.gpu_type, j.alloc_tres, j.submit_line,
    j.elapsed_s, j.total_cpu_s, j."partition"
FROM kept k
JOIN jobs j USING (cluster, job_id, run_start)
LEFT JOIN used u USING (cluster, job_id, run_start)
WHERE j."end" IS NOT NULL
    AND ($job_ids IS NULL OR list_contains($job_ids::BIGINT[], j.job_id))
    AND ($user IS NULL OR j."user" = $user)
    AND ($account IS NULL OR j.account = $account)
    AND (
        $accounts IS NULL
        OR list_contains(
            $accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': j.cluster, 'account': j.account}
        )
        OR j."user" = $reader
    )
ORDER BY k.gpu_s DESC, j.cluster, j.job_id, k.class
LIMIT 200
