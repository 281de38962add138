-- The writer's own scratch table: the use of GPUs that an import brought.
CREATE OR REPLACE TEMP TABLE staged_uses AS SELECT * FROM accounted_use LIMIT 0
