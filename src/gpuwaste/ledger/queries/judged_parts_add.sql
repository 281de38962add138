-- Adds the parts of runs between the edges of a window.
INSERT INTO judged_parts BY NAME
-- include: judged_rows
