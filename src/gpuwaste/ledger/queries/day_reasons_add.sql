-- Stores their unknown and exempt time by reason.
INSERT INTO day_reasons BY NAME
SELECT
    $rules::INTEGER AS rules,
    $day::BIGINT AS "day",
    cluster,
    "user",
    account,
    "partition",
    part.of AS "of",
    part.what AS what,
    part.reason AS reason,
    sum(part.ms)::BIGINT AS ms
FROM (
    SELECT
        cluster,
        "user",
        account,
        "partition",
-- include: judged_reason_parts
    FROM judged
    WHERE rules = $rules AND "end" >= $day AND "end" < $day + 86400
)
GROUP BY ALL
