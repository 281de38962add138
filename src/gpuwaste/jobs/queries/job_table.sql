-- The picked runs from number $first on up to $last as numbers, in their order: codes of texts, -1 for an instant and NaN
-- for an amount that is not known; what the ledger says of their GPUs, known from the last time when the hub learned more
-- of them, or from their end.
WITH runs AS (
    SELECT cluster, job_id, run_start, gpus, "start", "end", suspended_s
    FROM picked_jobs
    WHERE gpus > 0 AND row_no >= $first AND row_no < $last
),
-- include: gpu_use
, learnt AS (
    SELECT cluster, job_id, run_start, max(at_utc) AS at_utc
    FROM events
    SEMI JOIN runs USING (cluster, job_id, run_start)
    WHERE kind = 'ledger'
    GROUP BY ALL
)
SELECT
    p.job_id,
    p.submit,
    users.code::INTEGER AS "user",
    accounts.code::INTEGER AS account,
    parts.code::INTEGER AS "partition",
    qoses.code::INTEGER AS qos,
    names.code::INTEGER AS name,
    tres.code::INTEGER AS req_tres,
    states.code::INTEGER AS state,
    coalesce(p.time_limit_s::DOUBLE, 'nan') AS limit_s,
    p.is_array,
    p.interactive,
    coalesce(p."start", -1) AS "start",
    coalesce(p."end", -1) AS "end",
    CASE WHEN p."end" IS NULL OR p.elapsed_s IS NULL THEN 'nan'::DOUBLE ELSE p.elapsed_s::DOUBLE END AS run_s,
    coalesce(p.cpus::DOUBLE, 'nan') AS alloc_cpus,
    coalesce(p.max_rss_b::DOUBLE, 'nan') AS max_rss_b,
    coalesce(u.used_ratio, 'nan') AS used_ratio,
    coalesce(u.gpus_active::DOUBLE, 'nan') AS gpus_active,
    coalesce(u.gpus_used::DOUBLE, 'nan') AS gpus_used,
    coalesce(u.coverage, 'nan') AS gpu_coverage,
    CASE WHEN u.coverage IS NULL THEN -1 ELSE greatest(coalesce(l.at_utc, p."end"), p."end") END AS ledger_at
FROM picked_jobs p
JOIN picked_texts users ON users.kind = 'user' AND users.text = p."user"
JOIN picked_texts accounts ON accounts.kind = 'account' AND accounts.text = p.account
JOIN picked_texts parts ON parts.kind = 'partition' AND parts.text = p."partition"
JOIN picked_texts qoses ON qoses.kind = 'qos' AND qoses.text = p.qos
JOIN picked_texts names ON names.kind = 'name' AND names.text = p.name
JOIN picked_texts tres ON tres.kind = 'req_tres' AND tres.text = p.req_tres
JOIN picked_texts states ON states.kind = 'state' AND states.text = p.state
LEFT JOIN gpu_use u ON u.cluster = p.cluster AND u.job_id = p.job_id AND u.run_start = p.run_start
LEFT JOIN learnt l ON l.cluster = p.cluster AND l.job_id = p.job_id AND l.run_start = p.run_start
WHERE p.row_no >= $first AND p.row_no < $last
ORDER BY p.row_no
