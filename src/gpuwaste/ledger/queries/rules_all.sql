-- The rules, the standing ones first.
SELECT * FROM rules ORDER BY standing DESC, id
