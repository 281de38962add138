-- How many actions stand where, and when the oldest of them was decided.
SELECT status, kind, count(*) AS actions, min(decided_utc) AS first_utc
FROM actions
GROUP BY ALL
ORDER BY status, kind
