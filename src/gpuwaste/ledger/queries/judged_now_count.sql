-- How many rows a document has for itself.
SELECT (SELECT count(*) FROM judged_now) + (SELECT count(*) FROM judged_parts) AS rows
