-- Forgets the scratch tables of a read.
DROP TABLE IF EXISTS temp.judged_verdicts;
DROP TABLE IF EXISTS temp.verdict_targets;
DROP TABLE IF EXISTS temp.verdict_runs;
DROP TABLE IF EXISTS temp.picked_verdicts
