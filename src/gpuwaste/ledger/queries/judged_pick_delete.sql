-- Removes the rows that judged_pick picked in this transaction.
DELETE FROM judged
WHERE rowid IN (SELECT stood FROM judged_picked)
