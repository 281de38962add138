-- Runs submitted, started and ended in each step of the window, and what was held, cut at its edges. A run counts from
-- its start and against that from its end: of a step that ends at e, a change at t has the part e - t.
WITH
submits AS (
    SELECT (since - $start) // $step AS bin, sum(submitted)::BIGINT AS submitted
    FROM (
-- days: submits_days
    )
    GROUP BY bin
),
starts AS MATERIALIZED (
    SELECT
        (since - $start) // $step AS bin, sum(started)::BIGINT AS started, sum(gpus) AS gpus, sum(cpus) AS cpus,
        sum(gpu_moments + gpus * (since - $start)) AS gpu_moments, sum(cpu_moments + cpus * (since - $start)) AS cpu_moments
    FROM (
-- days: starts_days
    )
    GROUP BY bin
),
ends AS MATERIALIZED (
    SELECT
        (since - $start) // $step AS bin, state, sum(n) AS n, sum(gpus) AS gpus, sum(cpus) AS cpus,
        sum(gpu_moments + gpus * (since - $start)) AS gpu_moments, sum(cpu_moments + cpus * (since - $start)) AS cpu_moments
    FROM (
-- days: ends_days
    )
    GROUP BY ALL
),
ended AS (
    SELECT bin,
-- include: state_sums
    FROM ends
    GROUP BY bin
),
turns AS (
    SELECT bin, gpus, cpus, gpu_moments, cpu_moments FROM starts
    UNION ALL
    SELECT bin, -gpus, -cpus, -gpu_moments, -cpu_moments FROM ends
    UNION ALL
    -- What is held when the window begins.
    SELECT 0, sum(gpus), sum(cpus), 0, 0
    FROM jobs
    WHERE "start" < $start AND ("end" >= $start OR "end" IS NULL AND $now >= $start)
-- include: scope
    UNION ALL
    -- What is held now, where the window goes on after that.
    SELECT
        ($now - $start) // $step, -sum(gpus), -sum(cpus), -sum(gpus) * ($now - $start), -sum(cpus) * ($now - $start)
    FROM jobs
    WHERE "end" IS NULL AND "start" <= $now AND $now >= $start AND $now < $end
-- include: scope
),
steps AS (
    SELECT bin, bin * $step AS begin, least(bin * $step + $step, $end - $start) AS e
    FROM range($bins) t (bin)
),
held AS (
    SELECT
        s.bin,
        e * coalesce(sum(gpus), 0) - coalesce(sum(gpu_moments), 0) + (e - begin) * coalesce(sum(sum(gpus)) OVER before, 0) AS gpu_s,
        e * coalesce(sum(cpus), 0) - coalesce(sum(cpu_moments), 0) + (e - begin) * coalesce(sum(sum(cpus)) OVER before, 0) AS cpu_s
    FROM steps s
    LEFT JOIN turns USING (bin)
    GROUP BY s.bin, begin, e
    WINDOW before AS (ORDER BY s.bin ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT
    bin,
    bin * $step // $block AS block,
    coalesce(submitted, 0) AS submitted,
    coalesce(started, 0) AS started,
    coalesce(ended, 0) AS ended,
    coalesce(completed, 0) AS completed,
    coalesce(failed, 0) AS failed,
    coalesce(timeout, 0) AS timeout,
    coalesce(out_of_memory, 0) AS out_of_memory,
    coalesce(cancelled, 0) AS cancelled,
    coalesce(node_fail, 0) AS node_fail,
    coalesce(other, 0) AS other,
    coalesce(unknown, 0) AS unknown,
    gpu_s::BIGINT AS gpu_s,
    cpu_s::BIGINT AS cpu_s
FROM held
LEFT JOIN submits USING (bin)
LEFT JOIN starts USING (bin)
LEFT JOIN ended USING (bin)
ORDER BY bin
