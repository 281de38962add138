-- Notes until when all runs are judged by $id.
UPDATE rules SET judged_until = $until WHERE id = $id
