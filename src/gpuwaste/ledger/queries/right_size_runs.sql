-- The newest runs with GPUs of each such jobs (user, name, number of GPUs, GPU type) on $cluster that ended after $from_s, in
-- order of their end: what each was given and what it used. Of such jobs that ran $min_runs times or more: runs until
-- $completed of them completed, $of_jobs at most; of the users $users and of $sample ten thousandths of the names (NULL: of all);
-- the newest $most in all. Of GPUs the busiest one's figures count. NULL: not known, or known for less than $min_coverage of
-- the time. A run that shared a GPU is not among them. Where no agent reported, what jobstats has in accounting counts.
WITH runs AS MATERIALIZED (
    SELECT
        cluster, job_id, run_start, submit, printed_id, "user", account, "partition", name, submit_line, gpus, gpu_type,
        n_nodes, cpus, mem_req_b, time_limit_s, state, "end", "start", suspended_s, total_cpu_s,
-- include: right_size_name
        ,
-- include: day_part
    FROM jobs
    WHERE
        cluster = $cluster
        AND ($users IS NULL OR "user" IN (SELECT unnest($users::VARCHAR[])))
        AND
-- include: right_size_ended
        AND ($sample IS NULL OR hash("user", such, gpus, gpu_type) % 10000 < $sample)
    WINDOW
        these AS (PARTITION BY "user", such, gpus, gpu_type),
        newest AS (PARTITION BY "user", such, gpus, gpu_type ORDER BY "end" DESC, job_id DESC)
    QUALIFY
        count(*) OVER these >= $min_runs
        AND row_number() OVER newest <= $of_jobs
        AND count(*) FILTER (state = 'COMPLETED') OVER newest <= $completed
    ORDER BY "end" DESC, job_id
    LIMIT $most
),
rows AS (
    SELECT
        h.job_id, h.run_start, h.node, h.gpu_uuid, h.share, h.pct, h.util_ms, h.mem_max_b, h.mem_total_b,
        h.power_w_at_full, h.power_limit_w, h.profiled_ms, h.sm_active, h.dram_active, h.host_mem_max_b
    FROM hours h
    SEMI JOIN runs USING (cluster, job_id, run_start)
    WHERE h.hour_utc > $from_hour
    UNION ALL BY NAME
    SELECT
        d.job_id, d.run_start, d.node, d.gpu_uuid, d.share, d.pct, d.util_ms, d.mem_max_b, d.mem_total_b,
        d.power_w_at_full, d.power_limit_w, d.profiled_ms, d.sm_active, d.dram_active, d.host_mem_max_b
    FROM days d
    SEMI JOIN runs USING (part, cluster, job_id, run_start) -- the part lets blocks be skipped: days lie by user
    WHERE d.day_utc > $from_hour - 86400
),
devices AS (
    SELECT
        job_id,
        run_start,
        node,
        gpu_uuid,
        min(share) AS share,
        coalesce(sum(list_sum(util_ms)), 0) AS known_ms,
        coalesce(sum(list_dot_product(pct::DOUBLE[], util_ms::DOUBLE[])), 0) AS pct_ms,
        CASE WHEN count(mem_max_b) = count(*) THEN max(mem_max_b) END AS mem_max_b,
        max(mem_total_b) AS mem_total_b,
        max(power_w_at_full) / nullif(max(power_limit_w), 0) AS power_ratio, -- the hour with the highest mean
        sum(profiled_ms) AS profiled_ms,
        CASE WHEN count(sm_active) = count(profiled_ms) THEN sum(sm_active * profiled_ms) / nullif(sum(profiled_ms), 0) END AS sm,
        CASE WHEN count(dram_active) = count(profiled_ms) THEN sum(dram_active * profiled_ms) / nullif(sum(profiled_ms), 0) END AS dram,
        max(host_mem_max_b) AS host_mem_max_b
    FROM rows
    GROUP BY job_id, run_start, node, gpu_uuid
),
shares AS ( -- while busy, as DeviceUse.sm_share
    SELECT
        *,
        pct_ms / nullif(known_ms, 0) / 100 AS busy,
        CASE WHEN 2 * profiled_ms >= known_ms THEN least(1, 100 * sm * known_ms / nullif(pct_ms, 0)) END AS sm_share,
        CASE WHEN 2 * profiled_ms >= known_ms THEN least(1, 100 * dram * known_ms / nullif(pct_ms, 0)) END AS dram_share
    FROM devices
),
used AS (
    SELECT
        job_id,
        run_start,
        count(*) AS seen,
        min(share) AS share,
        min(known_ms) AS known_ms,
        CASE WHEN count(mem_max_b) = count(*) THEN max(mem_max_b) END AS gpu_mem_b,
        min(mem_total_b) AS gpu_total_b,
        CASE WHEN count(busy) = count(*) THEN max(busy) END AS busy,
        CASE WHEN count(sm_share) = count(*) THEN max(sm_share) END AS sm_share,
        CASE WHEN count(dram_share) = count(*) THEN max(dram_share) END AS dram_share,
        CASE WHEN count(power_ratio) = count(*) THEN max(power_ratio) END AS power_ratio,
        max(host_mem_max_b) AS host_mem_b
    FROM shares
    GROUP BY job_id, run_start
),
told AS (
    SELECT
        job_id,
        run_start,
        CASE WHEN count(gpu_mem_max_b) = count(*) THEN max(gpu_mem_max_b) END AS gpu_mem_b,
        min(gpu_mem_total_b) AS gpu_total_b,
        CASE WHEN count(mean_pct) = count(*) THEN max(mean_pct) / 100 END AS busy,
        count(*) AS seen
    FROM accounted_use
    SEMI JOIN runs USING (cluster, job_id, run_start)
    WHERE source = 'jobstats' AND gpu <> ''
    GROUP BY job_id, run_start
)
SELECT
    r.cluster,
    r.job_id,
    r.run_start,
    r.submit,
    r.printed_id,
    r."user",
    r.account,
    r."partition",
    r.name,
    r.submit_line,
    r.gpus,
    r.gpu_type,
    r.n_nodes,
    r.cpus,
    r.mem_req_b,
    r.time_limit_s,
    r.state,
    r."end" AS ended,
    greatest(r."end" - r."start" - r.suspended_s, 1) AS ran_s,
    r.total_cpu_s,
    u.seen = r.gpus AND u.known_ms >= 1000 * $min_coverage * ran_s AS known,
    u.seen IS NULL AND coalesce(t.seen = r.gpus, false) AS by_jobstats,
    CASE WHEN known THEN u.gpu_mem_b WHEN by_jobstats THEN t.gpu_mem_b END AS gpu_mem_b,
    CASE WHEN by_jobstats THEN t.gpu_total_b ELSE u.gpu_total_b END AS gpu_total_b,
    CASE WHEN known THEN u.busy WHEN by_jobstats THEN t.busy END AS busy,
    u.sm_share,
    u.dram_share,
    u.power_ratio,
    CASE WHEN known THEN u.host_mem_b END AS host_mem_b,
    coalesce(p.whole_node, false) AS whole_node
FROM runs r
LEFT JOIN used u USING (job_id, run_start)
LEFT JOIN told t USING (job_id, run_start)
LEFT JOIN partitions p ON p.cluster = r.cluster AND p.name = r."partition"
WHERE coalesce(u.share, 1) >= 1
ORDER BY ended, r.job_id
