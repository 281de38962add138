-- The clusters of which the store has runs.
SELECT DISTINCT cluster FROM jobs ORDER BY cluster
