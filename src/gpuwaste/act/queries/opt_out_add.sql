-- Notes that a user wants no digest.
INSERT INTO notice_opt_outs
SELECT $user, $now
WHERE NOT EXISTS (FROM notice_opt_outs WHERE "user" = $user)
