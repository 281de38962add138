-- Ends the demotions of a rule's file.
UPDATE rule_demotions SET restored_utc = $now, restored_by = $person
WHERE rule = $rule AND hash = $hash AND restored_utc = 0
