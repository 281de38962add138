-- The $limit newest, of $user or of all, once for all runs of which the same was said at one time.
SELECT arg_min(printed_id, run_start) AS printed_id, "user", at_utc, words, count(*) AS runs
FROM disputes
WHERE $user::VARCHAR IS NULL OR "user" = $user
GROUP BY "user", at_utc, words
ORDER BY at_utc DESC, printed_id
LIMIT $limit
