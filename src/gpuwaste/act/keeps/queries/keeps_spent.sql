-- What a person has used of the budget since $since: seconds over all runs, and orders.
SELECT coalesce(sum(until_utc - since_utc), 0)::BIGINT AS seconds, count(DISTINCT id) AS keeps
FROM keeps
WHERE asked_by = $person AND at_utc > $since
