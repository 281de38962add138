-- Accounting's interval of each picked run that has started, or what of it lies between $from_s and $to_s; and how many
-- more GPUs were seen than it held.
CREATE OR REPLACE TEMP TABLE ledger_spans AS
SELECT
    p.place,
    p.gpus,
    p.interactive,
    p."end" IS NOT NULL AS ended,
    p.state = 'COMPLETED' AS completed,
    coalesce(s.own, 0) AS own_seen,
    greatest(coalesce(s.own - p.gpus, 0), 0) AS beyond,
    1000 * greatest(p."start", $from_s) AS begin_ms,
    greatest(begin_ms, 1000 * least(coalesce(p."end", $now), $to_s)) AS until_ms,
    greatest(until_ms - begin_ms - 1000 * p.suspended_s, 0) AS ran_ms,
    CASE
        WHEN begin_ms = 1000 * p."start" AND ($to_s IS NULL OR coalesce(p."end", $now) <= $to_s) THEN 1000 * p.suspended_s
        ELSE 0
    END AS suspension_ms -- of a part of a run accounting does not tell it
FROM picked_runs p
LEFT JOIN (SELECT place, count(*) AS own FROM ledger_seen WHERE share >= 1 GROUP BY place) s USING (place)
WHERE p."start" IS NOT NULL
