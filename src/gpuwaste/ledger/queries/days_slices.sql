-- Slices of the days from $from_s to before $to_s in the order of parts, about $step_rows rows in each: the first and the
-- last part, and the rows.
WITH counted AS (
    SELECT part, count(*) AS rows
    FROM days
    WHERE day_utc >= $from_s AND day_utc < $to_s
    GROUP BY part
)
SELECT min(part)::BIGINT AS first, max(part)::BIGINT AS last, sum(rows)::BIGINT AS rows
FROM (SELECT part, rows, (sum(rows) OVER (ORDER BY part) - rows) // $step_rows AS slice FROM counted)
GROUP BY slice
ORDER BY first
