-- The ids of actions that nobody took in time.
SELECT *
FROM actions
WHERE status IN ('intended', 'approved') AND expires_utc <= $now
ORDER BY decided_utc, id
LIMIT $limit
