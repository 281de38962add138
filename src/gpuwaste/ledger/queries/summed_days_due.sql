-- The UTC days before that of $until whose sums are not stored.
SELECT "day"
FROM (
    SELECT unnest(range(first - first % 86400, $until - $until % 86400, 86400)) AS "day"
    FROM (SELECT min("end") AS first FROM judged WHERE rules = $rules)
)
ANTI JOIN (SELECT "day" FROM summed_days WHERE rules = $rules) USING ("day")
ORDER BY "day"
