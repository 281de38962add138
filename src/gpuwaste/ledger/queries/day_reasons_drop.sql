-- Forgets what rules that are gone gave.
DELETE FROM day_reasons WHERE rules NOT IN (SELECT id FROM rules)
