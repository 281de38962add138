-- Stores what the owner of the runs of the JSON array $rows says of them.
MERGE INTO disputes d
USING (
    SELECT unnest(from_json_strict($rows::JSON, '[{
    "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "printed_id": "VARCHAR", "user": "VARCHAR",
    "at_utc": "BIGINT", "words": "VARCHAR"
    }]'), recursive := true)
) n
ON d.cluster = n.cluster AND d.job_id = n.job_id AND d.run_start = n.run_start
WHEN MATCHED THEN UPDATE SET printed_id = n.printed_id, "user" = n."user", at_utc = n.at_utc, words = n.words
WHEN NOT MATCHED THEN INSERT BY NAME
