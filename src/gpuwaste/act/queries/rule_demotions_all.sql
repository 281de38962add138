-- The last demotion of each rule and file.
SELECT *
FROM rule_demotions
QUALIFY row_number() OVER (PARTITION BY rule, hash ORDER BY at_utc DESC, restored_utc) = 1
ORDER BY rule, hash
