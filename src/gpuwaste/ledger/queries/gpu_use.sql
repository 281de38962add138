-- What agents or jobstats (in accounting) say of the GPUs of the relation `runs` (cluster, job_id, run_start, gpus, start,
-- end, suspended_s): one row for each run that has ended and has a GPU of its own of which something is known; a run that shares a GPU has
-- none. Hours outside $from_hour to $to_hour are left out, and days that lie wholly outside. Included by the queries that
-- choose the runs. Where both sources have a run, the one that knows more of it counts; a mean is enough for all of a GPU.
seen_use AS (
    SELECT h.cluster, h.job_id, h.run_start, h.node, h.gpu_uuid, h.share, h.pct, h.util_ms, h.suspended_ms
    FROM hours h
    SEMI JOIN runs USING (cluster, job_id, run_start)
    WHERE h.hour_utc BETWEEN $from_hour AND $to_hour
    UNION ALL
    SELECT d.cluster, d.job_id, d.run_start, d.node, d.gpu_uuid, d.share, d.pct, d.util_ms, d.suspended_ms
    FROM days d
    SEMI JOIN runs USING (cluster, job_id, run_start)
    WHERE d.day_utc > $from_hour - 86400 AND d.day_utc <= $to_hour
),
device_use AS MATERIALIZED (
    SELECT
        h.cluster,
        h.job_id,
        h.run_start,
        h.node,
        h.gpu_uuid,
        min(h.share) AS share,
        coalesce(sum(list_sum(h.util_ms)), 0)::BIGINT AS known_ms,
        coalesce(sum(list_dot_product(h.pct::DOUBLE[], h.util_ms::DOUBLE[])), 0)::BIGINT AS pct_ms,
        sum(h.suspended_ms)::BIGINT AS suspended_ms
    FROM seen_use h
    GROUP BY h.cluster, h.job_id, h.run_start, h.node, h.gpu_uuid
),
beyond AS MATERIALIZED ( -- the few runs of which agents named more GPUs than accounting gave them
    SELECT d.cluster, d.job_id, d.run_start
    FROM device_use d
    JOIN runs r USING (cluster, job_id, run_start)
    GROUP BY d.cluster, d.job_id, d.run_start
    HAVING count(*) FILTER (d.share >= 1) > any_value(r.gpus)
),
bounded_use AS ( -- which of them count: the order of query ledger_gpus
    SELECT * FROM device_use ANTI JOIN beyond USING (cluster, job_id, run_start)
    UNION ALL BY NAME
    SELECT d.*
    FROM device_use d
    SEMI JOIN beyond USING (cluster, job_id, run_start)
    JOIN runs r USING (cluster, job_id, run_start)
    QUALIFY d.share < 1 OR row_number() OVER (
        PARTITION BY d.cluster, d.job_id, d.run_start, d.share >= 1
        ORDER BY starts_with(d.gpu_uuid, 'missing:'), d.known_ms DESC, d.node, d.gpu_uuid
    ) <= r.gpus
),
judged_use AS ( -- active_ms: the time that counts of each GPU, accounting's interval without suspension
    SELECT
        d.*,
        r.gpus,
        1000 * greatest(r."end" - r."start", 0) AS span_ms,
        greatest(span_ms - greatest(d.suspended_ms, 1000 * r.suspended_s), 0) AS active_ms,
        greatest(span_ms - 1000 * r.suspended_s, 0) AS unseen_ms -- of a GPU that no agent reported
    FROM bounded_use d
    JOIN runs r USING (cluster, job_id, run_start)
    WHERE r."end" IS NOT NULL AND r."start" IS NOT NULL AND r.gpus > 0
),
agent_use AS (
    SELECT
        cluster,
        job_id,
        run_start,
        sum(pct_ms) / sum(known_ms) / 100.0 AS used_ratio,
        count(*) FILTER (pct_ms > 0) AS gpus_used,
        greatest(
            count(*) FILTER (known_ms > 0 AND pct_ms >= $active_pct * known_ms),
            least(gpus_used, 1) -- who used a GPU, however little, has need of one
        ) AS gpus_active,
        sum(least(known_ms, active_ms))
            / (sum(active_ms) + greatest(any_value(gpus) - count(*), 0) * any_value(unseen_ms)) AS coverage
    FROM judged_use
    GROUP BY cluster, job_id, run_start
    HAVING min(share) >= 1 AND sum(known_ms) > 0 AND sum(active_ms) > 0
),
told_use AS (
    SELECT
        u.cluster,
        u.job_id,
        u.run_start,
        avg(u.mean_pct) / 100.0 AS used_ratio,
        count(*) FILTER (u.peak_pct IS DISTINCT FROM 0) AS gpus_used,
        greatest(count(*) FILTER (u.mean_pct >= $active_pct), least(gpus_used, 1)) AS gpus_active,
        least(count(*) / any_value(r.gpus), 1.0) AS coverage,
        bool_and(regexp_full_match(u.gpu, '[0-9]{1,4}')) AS numbered -- gpuwaste's own export names GPUs by UUID
    FROM accounted_use u
    JOIN runs r USING (cluster, job_id, run_start)
    WHERE
        u.run_start >= $from_hour
        AND u.run_start <= $to_hour
        AND u.source = 'jobstats'
        AND u.gpu <> ''
        AND u.mean_pct IS NOT NULL
        AND r."end" IS NOT NULL
        AND r.gpus > 0
    GROUP BY u.cluster, u.job_id, u.run_start
),
gpu_use AS (
    SELECT DISTINCT ON (cluster, job_id, run_start) * EXCLUDE (told, numbered)
    FROM (
        SELECT *, false AS told FROM agent_use
        UNION ALL BY NAME
        SELECT *, true AS told FROM told_use
    )
    ORDER BY coverage DESC, told
)
