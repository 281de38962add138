-- Every ladder.
SELECT rule, hash, subject, began_utc, step, step_utc, round FROM rule_ladders ORDER BY rule, subject
