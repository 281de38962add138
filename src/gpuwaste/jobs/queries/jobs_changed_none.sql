-- Nothing changes but details.
CREATE OR REPLACE TEMP TABLE changed_jobs AS SELECT * FROM staged_jobs LIMIT 0
