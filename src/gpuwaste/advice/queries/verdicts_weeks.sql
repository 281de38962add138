-- The score by policy and ISO week. `went_wrong` counts the verdicts with an outcome of which a target that the policy
-- named at least once came true, `found` those among them that were named: recall.
WITH watched AS (SELECT DISTINCT policy, unnest(map_keys(triggers)) AS target FROM picked_verdicts),
wrong AS (
    SELECT t.id, bool_or(t.came) AS wrong
    FROM verdict_targets t
    JOIN picked_verdicts p ON p.id = t.id
    SEMI JOIN watched w ON w.policy = p.policy AND w.target = t.target
    GROUP BY t.id
)
SELECT
    j.policy,
    j.week,
    count(*) AS n,
    count(*) FILTER (j.action = 'annotate') AS annotated,
    count(*) FILTER (j.action = 'warn') AS warned,
    count(*) FILTER (j.action = 'reject') AS rejected,
    count(*) FILTER (j.sampled) AS sampled,
    count(*) FILTER (j.sampled AND j.hit IS NOT NULL) AS sampled_judged,
    count(*) FILTER (j.sampled AND j.hit) AS sampled_hits,
    count(*) FILTER (j.would_be IN ('warn', 'reject')) AS would_say,
    count(*) FILTER (j.would_be IN ('warn', 'reject') AND j.hit IS NOT NULL) AS judged,
    count(*) FILTER (j.would_be IN ('warn', 'reject') AND j.hit) AS hits,
    count(*) FILTER (w.wrong) AS went_wrong,
    count(*) FILTER (w.wrong AND j.would_be IN ('warn', 'reject') AND j.hit) AS found,
    count(*) FILTER (j.held = 'override') AS overrides,
    count(*) FILTER (j.held = 'override' AND j.hit IS NOT NULL) AS overrides_judged,
    count(*) FILTER (j.held = 'override' AND j.hit) AS overrides_hits,
    count(*) FILTER (j.held = 'floor') AS floored,
    count(*) FILTER (j.start_within IS NOT NULL) AS starts,
    count(*) FILTER (j.start_within) AS starts_within,
    count(*) FILTER (j.stands = 'open') AS open,
    count(*) FILTER (j.stands = 'no job') AS no_job
FROM judged_verdicts j
LEFT JOIN wrong w ON w.id = j.id
GROUP BY j.policy, j.week
ORDER BY j.week, j.policy
