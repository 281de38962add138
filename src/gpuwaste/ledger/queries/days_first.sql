-- The earliest UTC day that hours were added up to.
SELECT min(day_utc) AS first FROM days
