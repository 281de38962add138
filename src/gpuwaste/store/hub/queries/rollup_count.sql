-- How many final hours of the UTC day $day still stand as hours.
SELECT count(*) AS hours FROM hours WHERE final AND hour_utc >= $day AND hour_utc < $day + 86400
