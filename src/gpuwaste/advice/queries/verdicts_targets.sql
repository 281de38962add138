-- Of each picked verdict and target that it named or gave a probability for: the share of its judged runs of which the
-- target came true, and whether that makes a hit. $ends lists, for each way in which a run can end, what it says of each target (advice/verdicts/hits.py).
CREATE OR REPLACE TEMP TABLE verdict_targets AS
WITH ends AS MATERIALIZED (
    SELECT unnest(from_json_strict($ends::JSON, '[{
        "target": "VARCHAR", "state": "VARCHAR", "ran": "BOOLEAN", "under": "BOOLEAN", "fewer": "BOOLEAN", "late": "BOOLEAN",
        "true_": "BOOLEAN"
    }]'), recursive := true)
),
named AS (
    SELECT id, unnest(map_keys(p)) AS target, unnest(map_values(p)) AS p, false AS said FROM picked_verdicts
    UNION ALL
    SELECT id, unnest(map_keys(triggers)), NULL, true FROM picked_verdicts
),
judged AS (
    SELECT r.id, e.target, avg(e.true_::INTEGER) AS share
    FROM verdict_runs r
    JOIN ends e
        ON e.state = r.state
        AND e.ran = r.ran
        AND e.under IS NOT DISTINCT FROM r.under
        AND e.fewer IS NOT DISTINCT FROM r.fewer
        AND e.late IS NOT DISTINCT FROM r.at_limit
    GROUP BY r.id, e.target
)
SELECT n.id, n.target, max(n.p) AS p, bool_or(n.said) AS said, any_value(j.share) AS share,
    any_value(j.share) >= $hit_share::DOUBLE AS came
FROM named n
JOIN judged j ON j.id = n.id AND j.target = n.target
GROUP BY n.id, n.target
