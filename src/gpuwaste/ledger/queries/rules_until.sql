-- Notes until when all runs are judged by $id, where that was $from_s; returns nothing where it was not.
UPDATE rules SET judged_until = $until WHERE id = $id AND judged_until = $from_s RETURNING id
