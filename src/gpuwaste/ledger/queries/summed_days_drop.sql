-- Forgets which days were summed by rules that are gone.
DELETE FROM summed_days WHERE rules NOT IN (SELECT id FROM rules)
