-- Stores the sums of the runs that ended on the UTC day $day.
INSERT INTO day_sums BY NAME
SELECT
    $rules::INTEGER AS rules,
    $day::BIGINT AS "day",
    cluster,
    "user",
    account,
    "partition",
-- include: judged_count_sums
    ,
-- include: judged_sums_own
    ,
-- include: judged_sums_shared
FROM judged
WHERE rules = $rules AND "end" >= $day AND "end" < $day + 86400
GROUP BY cluster, "user", account, "partition"
