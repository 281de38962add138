-- Who wants no digest.
SELECT "user" FROM notice_opt_outs
