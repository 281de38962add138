-- Adds the judged runs of a selection to those that a document sums: $most at most.
INSERT INTO judged_now BY NAME
WITH
-- include: waste.judged_runs
SELECT * FROM runs LIMIT $most
