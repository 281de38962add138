-- For each rule and file of the JSON array $rows, of the runs that it has hit since the row's instant: how many are judged,
-- how many of these were wrong, and how many of the wrong ones had been kept. A run counts once, by its last step.
-- Wrong: a GPU worked again after that step, or after a keep that came after the first one, or an appeal about one of the
-- steps was upheld. Right: it has ended, and all its GPUs are known to have been idle to the end. A run that the rule
-- itself ended cannot show what it would have done: it counts as right once its owner had $appeal_s to appeal, and did
-- not. All else is unknown.
WITH wanted AS (
    SELECT unnest(from_json_strict($rows::JSON, '[{"rule": "VARCHAR", "hash": "VARCHAR", "since": "BIGINT"}]'),
        recursive := true)
),
hits AS (
    SELECT
        f.rule, f.hash, f.cluster, f.job_id, f.run_start, min(f.at_utc) AS first_utc, max(f.at_utc) AS last_utc,
        list(f.id) AS ids
    FROM rule_firings f
    JOIN wanted w ON w.rule = f.rule AND w.hash = f.hash AND f.at_utc > w.since
    WHERE f.job_id <> 0
    GROUP BY f.rule, f.hash, f.cluster, f.job_id, f.run_start
),
runs AS (
    SELECT h.*, j.gpus, j."end"
    FROM (SELECT DISTINCT cluster, job_id, run_start FROM hits) h
    JOIN jobs j USING (cluster, job_id, run_start)
    WHERE j."start" IS NOT NULL AND j.gpus > 0
),
seen AS (
    SELECT
        cluster, job_id, run_start, node, gpu_uuid, t1_ms, last_active_ms,
        coalesce(list_sum(util_ms), 0)::BIGINT AS known_ms,
        coalesce(util_ms[list_position(pct, 0)], 0)::BIGINT AS idle_ms,
        coalesce(list_sum(unknown_ms), 0)::BIGINT AS unknown_ms
    FROM hours
    SEMI JOIN runs USING (cluster, job_id, run_start)
    UNION ALL BY NAME
    SELECT
        cluster, job_id, run_start, node, gpu_uuid, t1_ms, last_active_ms,
        coalesce(list_sum(util_ms), 0)::BIGINT AS known_ms,
        coalesce(util_ms[list_position(pct, 0)], 0)::BIGINT AS idle_ms,
        coalesce(list_sum(unknown_ms), 0)::BIGINT AS unknown_ms
    FROM days
    SEMI JOIN runs USING (cluster, job_id, run_start)
),
asked AS (
    SELECT h.rule, h.hash, h.cluster, h.job_id, h.run_start, min(k.at_utc) AS kept_utc
    FROM hits h
    JOIN keeps k ON
        k.cluster = h.cluster AND k.job_id = h.job_id AND k.run_start = h.run_start AND k.at_utc >= h.first_utc
    GROUP BY h.rule, h.hash, h.cluster, h.job_id, h.run_start
),
told AS (
    SELECT
        h.rule, h.hash, h.cluster, h.job_id, h.run_start,
        coalesce(bool_or(a.outcome = 'upheld'), false) AS upheld,
        coalesce(bool_or(a.status = 'open'), false) AS open
    FROM hits h
    JOIN appeals a ON a.kind = 'action' AND list_contains(h.ids, a.about)
    GROUP BY h.rule, h.hash, h.cluster, h.job_id, h.run_start
),
enders AS (
    SELECT h.rule, h.hash, h.cluster, h.job_id, h.run_start, max(x.sent_utc) AS sent_utc
    FROM hits h
    JOIN actions x ON list_contains(h.ids, x.id) AND x.status = 'confirmed' AND list_contains($enders::VARCHAR[], x.kind)
    GROUP BY h.rule, h.hash, h.cluster, h.job_id, h.run_start
),
found AS (
    SELECT
        h.rule,
        h.hash,
        any_value(t.upheld) AS upheld,
        any_value(t.open) AS open,
        any_value(e.sent_utc) AS sent_utc,
        any_value(k.kept_utc) AS kept_utc,
        any_value(r."end") AS end_utc,
        coalesce(
            max(s.last_active_ms) FILTER (s.idle_ms < s.known_ms)
            > (least(any_value(h.last_utc), any_value(k.kept_utc)) + 30) * 1000,
            false
        ) AS woke,
        coalesce(sum(s.unknown_ms) FILTER (s.t1_ms > h.last_utc * 1000), 0) AS unknown_ms,
        count(DISTINCT (s.node, s.gpu_uuid)) FILTER (s.t1_ms >= r."end" * 1000 - 120000) >= any_value(r.gpus) AS complete
    FROM hits h
    JOIN runs r USING (cluster, job_id, run_start)
    LEFT JOIN seen s USING (cluster, job_id, run_start)
    LEFT JOIN asked k USING (rule, hash, cluster, job_id, run_start)
    LEFT JOIN told t USING (rule, hash, cluster, job_id, run_start)
    LEFT JOIN enders e USING (rule, hash, cluster, job_id, run_start)
    GROUP BY h.rule, h.hash, cluster, job_id, run_start
),
judged AS (
    SELECT
        rule,
        hash,
        kept_utc IS NOT NULL AS kept,
        sent_utc IS NOT NULL AS ended_by_rule,
        CASE
            WHEN coalesce(upheld, false) OR woke THEN 'wrong'
            WHEN end_utc IS NULL OR NOT coalesce(complete, false) OR unknown_ms > 0 THEN 'unknown'
            WHEN sent_utc IS NULL THEN 'right'
            WHEN coalesce(open, false) OR sent_utc > $now - $appeal_s THEN 'unknown'
            ELSE 'right'
        END AS verdict
    FROM found
)
SELECT
    rule,
    hash,
    count(*) FILTER (verdict <> 'unknown') AS judged,
    count(*) FILTER (verdict = 'wrong') AS wrong,
    count(*) FILTER (verdict = 'wrong' AND kept) AS wrong_kept,
    count(*) FILTER (verdict = 'right' AND ended_by_rule) AS unappealed,
    count(*) FILTER (verdict = 'unknown') AS unknown
FROM judged
GROUP BY rule, hash
ORDER BY rule, hash
