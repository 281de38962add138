-- Adds the campaigns of the JSON array $rows.
INSERT INTO campaigns BY NAME
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "name": "VARCHAR", "hash": "VARCHAR", "text": "VARCHAR", "key_print": "VARCHAR", "first_utc": "BIGINT",
        "gone_utc": "BIGINT"
    }]'), recursive := true)
) n
