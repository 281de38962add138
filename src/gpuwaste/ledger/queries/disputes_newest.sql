-- The $limit newest, once for all runs of which the same was said at one time.
SELECT arg_min(printed_id, run_start) AS printed_id, "user", at_utc, words, count(*) AS runs
FROM disputes
GROUP BY "user", at_utc, words
ORDER BY at_utc DESC, printed_id
LIMIT $limit
