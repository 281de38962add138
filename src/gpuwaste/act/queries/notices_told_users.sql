-- How many notices of a kind each user was told of periods that ended since $since.
SELECT "user", count(*) AS notices
FROM notices
WHERE kind = $kind AND dry = $dry AND period_end >= $since
    AND status IN ('due', 'later', 'sending', 'sent', 'unclear', 'dry')
GROUP BY "user"
