-- Forgets rules that do not stand.
DELETE FROM rules WHERE NOT standing
