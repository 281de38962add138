-- By user and account: how many verdicts of $policies, steps of $rules and digests (if $digest) of [$from, $to) reached the
-- user, and how many $campaign held back. Modifications and plans reach nobody by themselves; a digest has no account.
SELECT "user", account, count(*) FILTER (NOT back)::BIGINT AS given, count(*) FILTER (back)::BIGINT AS withheld
FROM (
    SELECT "user", account, campaign = $campaign AS back
    FROM verdicts
    WHERE at_utc_us >= $from::BIGINT * 1000000 AND at_utc_us < $to::BIGINT * 1000000
        AND list_contains($policies::VARCHAR[], policy)
        AND ((campaign = $campaign AND would_be IN ('warn', 'reject')) OR action IN ('warn', 'reject'))
    UNION ALL
    SELECT "user", account, campaign = $campaign AS back
    FROM rule_firings
    WHERE at_utc >= $from AND at_utc < $to AND list_contains($rules::VARCHAR[], rule) AND "user" <> ''
        AND (campaign = $campaign OR done)
    UNION ALL
    SELECT "user", '' AS account, why = 'held_back' AS back
    FROM notices
    WHERE $digest AND kind = 'digest' AND NOT dry AND period_end >= $from AND period_end < $to
        AND (why = 'held_back' OR status IN ('sent', 'unclear'))
)
GROUP BY "user", account
ORDER BY "user", account
