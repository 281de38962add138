-- GPU-milliseconds of own GPUs between the edges of the window, by user and account: held, wasted, unknown.
WITH
-- include: judged_held
SELECT
    "user", account, sum(alloc_ms)::BIGINT AS alloc_ms, sum(wasted_ms)::BIGINT AS wasted_ms, sum(unknown_ms)::BIGINT AS unknown_ms
FROM (
    SELECT "user", account, alloc_ms, wasted_ms, unknown_ms
    FROM held
    WHERE NOT $cut OR run_start >= $from_s AND coalesce("end", $now) <= $to_s
    UNION ALL
    SELECT "user", account,
-- include: judged_own
    FROM judged_parts
)
GROUP BY "user", account
