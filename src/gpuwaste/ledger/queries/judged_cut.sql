-- How many runs an edge of the window cuts.
SELECT count(*) AS runs FROM judged_parts
