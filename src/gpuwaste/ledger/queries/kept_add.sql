-- Adds the runs that were judged last to table kept_runs.
INSERT INTO kept_runs BY NAME
-- include: judged_rows
