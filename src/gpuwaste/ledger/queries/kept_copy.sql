-- Adds the runs, or parts of runs, in table kept_runs that a selection covers to those that a document sums: NULL is "any".
INSERT INTO judged_now BY NAME
SELECT *
FROM kept_runs r
WHERE
-- include: judged_kept_scope
