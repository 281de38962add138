-- Stores judged runs.
INSERT INTO judged BY NAME
-- include: waste.judged_rows
