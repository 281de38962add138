-- Unknown and exempt time of the judged GPUs by reason.
CREATE OR REPLACE TEMP TABLE ledger_parts AS
WITH told AS (
    SELECT place, own, node, gpu_uuid, unknown_cut_ms, reason, min(nth) AS nth, sum(ms)::BIGINT AS ms
    FROM (
        SELECT
            place, own, node, gpu_uuid, unknown_cut_ms, unnest(unknown_reason) AS reason, unnest(unknown_ms) AS ms,
            generate_subscripts(unknown_reason, 1) AS nth
        FROM ledger_gpus
        WHERE seen_unknown_ms > 0
    )
    WHERE ms > 0
    GROUP BY ALL
),
parts AS (
    SELECT
        * EXCLUDE (unknown_cut_ms, nth),
        'unknown' AS what
    FROM told
    WHERE unknown_cut_ms = 0
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (unknown_cut_ms, nth) REPLACE (
            least(ms, greatest(sum(ms) OVER (PARTITION BY place, node, gpu_uuid ORDER BY nth) - unknown_cut_ms, 0))::BIGINT AS ms
        ),
        'unknown' AS what
    FROM told
    WHERE unknown_cut_ms > 0
    UNION ALL BY NAME
    SELECT
        place, own, node, gpu_uuid,
        CASE WHEN gpu_uuid = '' THEN 'no_agent' WHEN told_pct IS NOT NULL THEN 'mean_only' ELSE 'unreported' END AS reason,
        unseen_ms AS ms, 'unknown' AS what
    FROM ledger_gpus
    WHERE unseen_ms > 0
    UNION ALL BY NAME
    SELECT
        place, own, node, gpu_uuid, CASE WHEN resident THEN 'memory_resident' ELSE 'interactive_grace' END AS reason,
        exempt_ms AS ms, 'exempt' AS what
    FROM ledger_gpus
    WHERE exempt_ms > 0
)
SELECT * FROM parts
