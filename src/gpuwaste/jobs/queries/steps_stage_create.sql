-- The writer's own scratch table: the steps that an import brought.
CREATE OR REPLACE TEMP TABLE staged_steps AS SELECT * FROM steps LIMIT 0
