-- The verdicts of the ids $ids.
SELECT * FROM verdicts
WHERE id BETWEEN list_min($ids::VARCHAR[]) AND list_max($ids::VARCHAR[]) AND list_contains($ids::VARCHAR[], id)
