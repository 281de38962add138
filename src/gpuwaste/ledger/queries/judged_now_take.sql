-- Adds the stored runs of a selection to those that a document sums, $most at most.
INSERT INTO judged_now BY NAME
-- include: judged_stored
LIMIT $most
