-- Ended runs that kept GPUs from jobs that waited in [from_s, to_s), in the scope asked for, with what they used; NULL is
-- "any". Nodes and steps are those of the runs that are printed: of a year all of them are many.
WITH told AS NOT MATERIALIZED (
    SELECT cluster, job_id, run_start, class, node, gpu_s
    FROM balance_blockers
    WHERE hour_utc >= $from_s - 3599 AND hour_utc < $to_s
        AND ($clusters IS NULL OR list_contains($clusters::VARCHAR[], cluster))
        AND ($job_ids IS NULL OR list_contains($job_ids::BIGINT[], job_id))
), kept AS (
    SELECT cluster, job_id, run_start, class, sum(gpu_s)::BIGINT AS gpu_s FROM told GROUP BY ALL
), worst AS (
    SELECT
        k.class, k.gpu_s, j.max_rss_b, j.cluster, j.job_id, j.run_start, j.submit, j.printed_id, j.name, j."user",
        j."start", j."end", j.n_nodes, j.cpus, j.gpus, j.gpu_type, j.alloc_tres, j.submit_line, j.elapsed_s,
        j.total_cpu_s, j."partition"
    FROM kept k
    JOIN jobs j USING (cluster, job_id, run_start)
    WHERE j."end" IS NOT NULL
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
), places AS (
    SELECT t.cluster, t.job_id, t.run_start, t.class, list(DISTINCT t.node ORDER BY t.node)[:256] AS on_nodes
    FROM told t
    SEMI JOIN worst w USING (cluster, job_id, run_start, class)
    GROUP BY ALL
), used AS (
    SELECT s.cluster, s.job_id, s.run_start, max(s.max_rss_b * greatest(coalesce(s.tasks, 1), 1))::BIGINT AS used_b
    FROM steps s
    SEMI JOIN worst w USING (cluster, job_id, run_start)
    GROUP BY ALL
)
SELECT
    w.class, w.gpu_s, p.on_nodes, coalesce(u.used_b, w.max_rss_b) AS used_b, w.cluster, w.job_id, w.submit, w.printed_id,
    w.name, w."user", w."start", w."end", w.n_nodes, w.cpus, w.gpus, w.gpu_type, w.alloc_tres, w.submit_line,
    w.elapsed_s, w.total_cpu_s, w."partition"
FROM worst w
JOIN places p USING (cluster, job_id, run_start, class)
LEFT JOIN used u USING (cluster, job_id, run_start)
ORDER BY w.gpu_s DESC, w.cluster, w.job_id, w.class
