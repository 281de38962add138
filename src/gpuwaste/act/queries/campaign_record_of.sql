-- The newest $limit lines of the record of $campaign, the oldest first.
SELECT campaign, at_utc, what, hash, words
FROM (SELECT * FROM campaign_record WHERE campaign = $campaign ORDER BY at_utc DESC LIMIT $limit)
ORDER BY at_utc, what
