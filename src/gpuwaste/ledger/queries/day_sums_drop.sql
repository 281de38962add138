-- Forgets what rules that are gone gave.
DELETE FROM day_sums WHERE rules NOT IN (SELECT id FROM rules)
