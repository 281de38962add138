-- Adds the lines of the JSON array $rows.
INSERT INTO campaign_record BY NAME
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "campaign": "VARCHAR", "at_utc": "BIGINT", "what": "VARCHAR", "hash": "VARCHAR", "words": "VARCHAR"
    }]'), recursive := true)
) n
