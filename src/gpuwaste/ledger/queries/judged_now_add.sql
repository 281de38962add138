-- Adds open runs to those that a document sums.
INSERT INTO judged_now BY NAME
-- include: judged_rows
