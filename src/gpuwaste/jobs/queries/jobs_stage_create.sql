-- The writer's own scratch tables: what an import brought, and what of it is new or different.
CREATE OR REPLACE TEMP TABLE staged_jobs AS SELECT * FROM jobs LIMIT 0
