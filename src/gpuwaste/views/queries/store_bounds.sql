-- The first and the last time that the store's jobs name.
SELECT min(submit) AS first, greatest(max(submit), max("start"), max("end")) AS last
FROM jobs
WHERE true
-- include: scope
