-- What each rule did since $since: steps, those that were only recorded, jobs or nodes, users, and the last one.
SELECT
    rule,
    count(*) AS steps,
    count(*) FILTER (NOT done) AS recorded,
    count(DISTINCT subject) AS subjects,
    count(DISTINCT "user") FILTER ("user" <> '') AS users,
    max(at_utc) AS last_utc
FROM rule_firings
WHERE at_utc > $since
GROUP BY rule
ORDER BY rule
