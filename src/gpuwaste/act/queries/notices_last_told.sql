-- The end of the period of which each user was told last; what was only noted counts among its like.
SELECT "user", max(period_end) AS period_end
FROM notices
WHERE kind = 'digest' AND dry = $dry AND period_end < $before
    AND status IN ('due', 'later', 'sending', 'sent', 'unclear', 'dry')
GROUP BY "user"
