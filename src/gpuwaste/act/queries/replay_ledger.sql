-- What the ledger says at each instant of table looked, as moments.
INSERT INTO moments BY NAME
WITH parts AS (
    SELECT
        cluster,
        job_id,
        run_start,
        t1_ms // 1000 AS until_s,
        sum(sum(idle_run_ms)) OVER run AS idle_run_ms,
        sum(sum(coalesce(list_sum(util_ms), 0))) OVER run AS known_ms,
        sum(sum(coalesce(list_sum(unknown_ms), 0))) OVER run AS unknown_ms
    FROM (
        SELECT cluster, job_id, run_start, t1_ms, idle_run_ms, util_ms, unknown_ms FROM hours
        UNION ALL BY NAME
        SELECT cluster, job_id, run_start, t1_ms, idle_run_ms, util_ms, unknown_ms FROM days
    )
    SEMI JOIN stretches USING (cluster, job_id, run_start)
    GROUP BY cluster, job_id, run_start, t1_ms // 1000
    WINDOW run AS (PARTITION BY cluster, job_id, run_start ORDER BY t1_ms // 1000)
),
known AS (
    SELECT
        l.*,
        coalesce(p.idle_run_ms, 0) / 1000 + l.gpus * l.after_s AS wasted_s,
        coalesce(p.known_ms, 0) / 1000 + l.gpus * l.after_s AS known_s,
        coalesce(p.unknown_ms, 0) / 1000 AS unknown_s
    FROM looked l
    ASOF LEFT JOIN parts p
        ON p.cluster = l.cluster AND p.job_id = l.job_id AND p.run_start = l.run_start AND p.until_s <= l.begin_s
)
SELECT
    place,
    cluster,
    job_id,
    run_start,
    at_utc,
    after_s::DOUBLE AS "ledger.idle_s",
    gpus::BIGINT AS "ledger.idle_gpus",
    after_s::DOUBLE AS "ledger.longest_idle_s",
    CASE WHEN untouched THEN gpus ELSE 0 END::BIGINT AS "ledger.untouched_gpus",
    wasted_s::DOUBLE AS "ledger.wasted_gpu_s",
    CASE WHEN resident THEN wasted_s WHEN interactive THEN least(wasted_s, $grace_s * gpus) ELSE 0 END::DOUBLE AS "ledger.exempt_gpu_s",
    0::DOUBLE AS "ledger.age_s",
    (known_s / (known_s + unknown_s))::DOUBLE AS "ledger.coverage"
FROM known
