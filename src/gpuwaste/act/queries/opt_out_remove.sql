-- Forgets that a user wanted no digest.
DELETE FROM notice_opt_outs WHERE "user" = $user
