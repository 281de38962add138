-- The least that each node of a cluster has: the most that runs held there at the same time, each spread over its nodes.
-- Sums are DOUBLE, exact for whole numbers up to 2^53, and a third faster than HUGEINT.
WITH held AS MATERIALIZED (
    SELECT l.node, j."start", coalesce(j."end", $never) AS "end",
        coalesce(j.gpus, 0) // l.names + (l.place < coalesce(j.gpus, 0) % l.names)::DOUBLE AS gpus,
        coalesce(j.cpus, 0) // l.names + (l.place < coalesce(j.cpus, 0) % l.names)::DOUBLE AS cpus,
        (coalesce(t.memory_b, 0) // l.names)::DOUBLE AS memory_b,
        nullif(j.gpu_type, '') AS gpu_type,
        nullif(j."partition", '') AS part
    FROM jobs j
    JOIN list_names l ON l.nodes = j.nodes
    LEFT JOIN tres_memory t ON t.alloc_tres = j.alloc_tres
    WHERE j.cluster = $cluster AND j."start" IS NOT NULL AND coalesce(j."end", $never) > j."start"
), changes AS (
    SELECT node, "start" AS moment, true AS begins, gpus, cpus, memory_b FROM held
    UNION ALL
    SELECT node, "end", false, -gpus, -cpus, -memory_b FROM held
), sums AS ( -- at one moment what ends is given back first
    SELECT node, sum(gpus) OVER w AS gpus, sum(cpus) OVER w AS cpus, sum(memory_b) OVER w AS memory_b
    FROM changes
    WINDOW w AS (PARTITION BY node ORDER BY moment, begins ROWS UNBOUNDED PRECEDING)
), most AS (
    SELECT node, max(gpus)::BIGINT AS gpus, max(cpus)::BIGINT AS cpus, max(memory_b)::BIGINT AS memory_b
    FROM sums
    GROUP BY node
), kinds AS (
    SELECT node, gpu_type, part, min("start") AS since, bool_or(gpus > 0) AS with_gpus
    FROM held
    GROUP BY node, gpu_type, part
)
SELECT node, min(k.since) AS since, any_value(m.gpus) AS gpus,
    coalesce(string_agg(DISTINCT k.gpu_type, ',' ORDER BY k.gpu_type) FILTER (k.with_gpus), '') AS gpu_type,
    any_value(m.cpus) AS cpus, any_value(m.memory_b) AS memory_b,
    coalesce(string_agg(DISTINCT k.part, ',' ORDER BY k.part), '') AS partitions
FROM kinds k
JOIN most m USING (node)
GROUP BY node
ORDER BY node
