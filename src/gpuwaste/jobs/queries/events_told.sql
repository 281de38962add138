-- Events of some kinds that were told since $since, the oldest first, with their data.
SELECT kind, subject, data FROM told_events
WHERE at_utc >= $since AND list_contains($kinds, kind)
ORDER BY seq
LIMIT $limit
