-- How many of the runs that a report covers each user has, by the user's name.
SELECT j."user", count(*) AS runs
FROM
-- include: ledger_candidates
WHERE
-- include: ledger_scope
GROUP BY j."user"
ORDER BY j."user"
