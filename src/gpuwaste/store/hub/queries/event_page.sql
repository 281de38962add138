-- Events after $after, the oldest first; those that carry their data only where $told.
SELECT * FROM events WHERE seq > $after AND ($told OR data IS NULL) ORDER BY seq LIMIT $limit
