-- Forgets the scratch tables of a step.
DROP TABLE IF EXISTS temp.rollup_rows;
DROP TABLE IF EXISTS temp.rollup_due
