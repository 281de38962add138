-- What each rung of some ladders ($rungs: ladder, number, action, after_s) does to the runs that match (table matched). A run
-- leaves a ladder at its first rung that ends it (cancel; requeue of a batch job) or shrinks it: accounting has another
-- run after that. A shrink keeps the first node of the run, and there is none where the run has one node, or where its
-- first node cannot be read from the list. Seconds are GPU-seconds (act/rules/rule_rungs.py has the formulas).
WITH rungs AS (
    SELECT
        unnest(from_json_strict($rungs::JSON, '[{"ladder": "BIGINT", "number": "BIGINT", "action": "VARCHAR", "after_s": "BIGINT"}]'), recursive := true)
),
thresholds AS (SELECT DISTINCT after_s AS threshold_s FROM rungs),
found AS (
    SELECT t.threshold_s, l.cluster, l.job_id, l.run_start, l.gpus, l.begin_s, l.at_utc, l.until_s, l.ended, l.woke, l.interactive
    FROM looked l
    SEMI JOIN matched m ON m.place = l.place
    JOIN thresholds t ON l.after_s >= t.threshold_s
    QUALIFY row_number() OVER (PARTITION BY t.threshold_s, l.cluster, l.job_id, l.run_start ORDER BY l.at_utc) = 1
),
firsts AS (
    -- gpu[1-4,7] begins with gpu1, gpu1,gpu2 with gpu1; a list of another form has no first node here.
    SELECT
        cluster,
        job_id,
        run_start,
        CASE
            WHEN n_nodes < 2 THEN NULL
            WHEN regexp_matches(nodes, '^[A-Za-z0-9._-]+(,|$)') THEN regexp_extract(nodes, '^[A-Za-z0-9._-]+')
            WHEN regexp_matches(nodes, '^[A-Za-z0-9._-]*\[[0-9]+[-,0-9]*\](,|$)') THEN replace(regexp_extract(nodes, '^[A-Za-z0-9._-]*\[[0-9]+'), '[', '')
        END AS first_node
    FROM jobs
    SEMI JOIN found USING (cluster, job_id, run_start)
),
others AS (
    SELECT
        r.cluster,
        r.job_id,
        r.run_start,
        count(DISTINCT r.gpu_uuid) AS gpus,
        max(r.last_active_ms) // 1000 AS active_until
    FROM (
        SELECT cluster, job_id, run_start, node, gpu_uuid, share, last_active_ms FROM hours
        UNION ALL BY NAME
        SELECT cluster, job_id, run_start, node, gpu_uuid, share, last_active_ms FROM days
    ) r
    JOIN firsts f USING (cluster, job_id, run_start)
    WHERE r.share >= 1 AND f.first_node IS NOT NULL AND r.node <> f.first_node
    GROUP BY ALL
),
reached AS (
    SELECT
        g.ladder,
        g.number,
        g.action,
        f.*,
        coalesce(o.gpus, 0) AS other_gpus,
        coalesce(o.active_until > f.begin_s + 30, false) AS other_woke,
        g.action = 'cancel' OR (g.action = 'requeue' AND NOT f.interactive) OR (g.action = 'shrink' AND coalesce(o.gpus, 0) > 0) AS stops
    FROM rungs g
    JOIN found f ON f.threshold_s = g.after_s
    LEFT JOIN others o USING (cluster, job_id, run_start)
),
acting AS (
    SELECT
        *,
        max(CASE WHEN action = 'checkpoint' THEN at_utc END) OVER run AS saved_utc
    FROM reached
    WINDOW run AS (PARTITION BY ladder, cluster, job_id, run_start ORDER BY number)
    QUALIFY coalesce(sum(stops::INTEGER) OVER (
        PARTITION BY ladder, cluster, job_id, run_start ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) = 0
),
judged AS (
    SELECT
        *,
        action NOT IN ('cancel', 'requeue', 'shrink') OR stops AS acts,
        ended AND CASE WHEN action = 'shrink' THEN other_woke ELSE woke END AS wrong,
        CASE WHEN action = 'shrink' THEN other_gpus ELSE gpus END * greatest(until_s - at_utc, 0) AS rest_s,
        gpus * greatest(at_utc - run_start, 0) AS held_s,
        gpus * greatest(at_utc - coalesce(saved_utc, run_start), 0) AS unsaved_s
    FROM acting
)
SELECT
    ladder,
    number,
    count(*) FILTER (acts) AS jobs,
    count(*) FILTER (acts AND ended) AS judged,
    count(*) FILTER (acts AND wrong) AS wrong,
    coalesce(sum(rest_s) FILTER (stops AND ended AND NOT wrong), 0)::DOUBLE AS freed_s,
    coalesce(sum(held_s) FILTER (stops AND wrong), 0)::DOUBLE AS cost_s,
    coalesce(sum(CASE WHEN action <> 'shrink' THEN unsaved_s END) FILTER (stops AND wrong), 0)::DOUBLE AS cost_low_s
FROM judged
GROUP BY ladder, number
ORDER BY ladder, number
