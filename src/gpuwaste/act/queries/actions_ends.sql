-- Status and reason of the actions with the ids $ids.
SELECT id, status, reason FROM actions WHERE list_contains($ids, id)
