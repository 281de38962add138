-- The earliest final hour before $before that still stands as an hour.
SELECT min(hour_utc) AS hour_utc FROM hours WHERE final AND hour_utc < $before
