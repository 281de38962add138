CREATE OR REPLACE TEMP TABLE moved_rules AS SELECT id FROM rules WHERE id = $id AND judged_until = $from_s
;
UPDATE rules SET judged_until = $until WHERE id = $id AND judged_until = $from_s
;
SELECT id FROM moved_rules
