-- Forgets the scratch tables of a read.
DROP TABLE IF EXISTS temp.picked_texts;
DROP TABLE IF EXISTS temp.picked_jobs
