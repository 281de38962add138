-- How many steps each rule did since $since, or would have done, by user.
SELECT rule, hash, done, "user", count(*) AS steps
FROM rule_firings
WHERE at_utc > $since
GROUP BY ALL
