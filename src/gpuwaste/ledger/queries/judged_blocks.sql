-- GPU-milliseconds held and wasted by the runs that ended in each block of $block seconds from $from_s on; whole runs.
WITH
-- include: judged_held
SELECT
    ("end" - $from_s) // $block AS block, sum(alloc_ms)::BIGINT AS alloc_ms, sum(wasted_ms)::BIGINT AS wasted_ms
FROM held
WHERE "end" >= $from_s AND "end" < $to_s
GROUP BY block
ORDER BY block
