-- The actions that rules want and that were not sent yet; a null list $ids selects every one.
SELECT *
FROM actions
WHERE status IN ('intended', 'approved') AND rule <> '' AND ($ids::VARCHAR[] IS NULL OR list_contains($ids::VARCHAR[], id))
ORDER BY decided_utc, id
