-- The last part of each slice of the days from $from_day to before $to_day, about $step_rows rows in each, and its rows.
WITH counted AS (
    SELECT part, count(*) AS rows
    FROM days
    WHERE day_utc >= $from_day AND day_utc < $to_day
    GROUP BY part
)
SELECT max(part)::BIGINT AS to_part, sum(rows)::BIGINT AS rows
FROM (SELECT part, rows, (sum(rows) OVER (ORDER BY part) - rows) // $step_rows AS slice FROM counted)
GROUP BY slice
ORDER BY to_part
