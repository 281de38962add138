-- Rows of each source that could not be read, each place of it once, and the first of those that are kept aside.
WITH latest AS (
    SELECT key, bad
    FROM pages
    QUALIFY row_number() OVER (PARTITION BY key, place, position ORDER BY import_id DESC, number DESC) = 1
), firsts AS (
    SELECT source, min(line) AS line, arg_min(reason, line) AS reason FROM quarantine GROUP BY source
)
SELECT key, sum(bad)::BIGINT AS bad, any_value(line) AS line, any_value(reason) AS reason
FROM latest
LEFT JOIN firsts ON source = key
GROUP BY key
ORDER BY key
