-- Notes that a user wants no digest.
INSERT OR IGNORE INTO notice_opt_outs VALUES ($user, $now)
