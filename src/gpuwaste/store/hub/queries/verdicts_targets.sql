-- Of each picked verdict and target that it named or gave a probability for: the share of its judged runs of which the
-- target came true. $ends lists, for each way in which a run can end, what it says of each target (core/hits.py).
CREATE OR REPLACE TEMP TABLE verdict_targets AS
WITH ends AS (
    SELECT unnest(from_json_strict($ends::JSON, '[{
        "target": "VARCHAR", "state": "VARCHAR", "ran": "BOOLEAN", "under": "BOOLEAN", "fewer": "BOOLEAN", "true_": "BOOLEAN"
    }]'), recursive := true)
),
named AS (
    SELECT id, unnest(list_distinct(list_concat(map_keys(p), map_keys(triggers)))) AS target, p, triggers
    FROM picked_verdicts
)
SELECT
    n.id,
    n.target,
    any_value(n.p[n.target]) AS p,
    bool_or(map_contains(n.triggers, n.target)) AS said,
    avg(e.true_::INTEGER) AS share
FROM named n
JOIN verdict_runs r ON r.id = n.id
JOIN ends e
    ON e.target = n.target
    AND e.state = r.state
    AND e.ran = r.ran
    AND e.under IS NOT DISTINCT FROM r.under
    AND e.fewer IS NOT DISTINCT FROM r.fewer
GROUP BY n.id, n.target
