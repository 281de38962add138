-- Forgets what was judged by rules that are gone.
DELETE FROM judged WHERE rules NOT IN (SELECT id FROM rules)
