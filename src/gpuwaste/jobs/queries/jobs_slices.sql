-- Slices of the ended runs that began from $from_s to before $to_s in the order of users, about $step_rows rows in each:
-- the first and the last user, and the rows.
WITH counted AS (
    SELECT "user", count(*) AS rows
    FROM jobs
    WHERE run_start >= $from_s AND run_start < $to_s AND "end" IS NOT NULL
    GROUP BY "user"
)
SELECT min("user") AS first, max("user") AS last, sum(rows)::BIGINT AS rows
FROM (SELECT "user", rows, (sum(rows) OVER (ORDER BY "user") - rows) // $step_rows AS slice FROM counted)
GROUP BY slice
ORDER BY first
