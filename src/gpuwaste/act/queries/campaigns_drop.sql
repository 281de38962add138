-- Removes the campaigns $names.
DELETE FROM campaigns WHERE list_contains($names::VARCHAR[], name)
