-- Keeps events that an outlet could not hand over, of the JSON array $rows; the newest reason stands.
MERGE INTO dead_letters d
USING (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "outlet": "VARCHAR", "seq": "BIGINT", "id": "VARCHAR", "kind": "VARCHAR", "reason": "VARCHAR", "at_utc": "BIGINT"
    }]'), recursive := true)
) n
ON d.outlet = n.outlet AND d.seq = n.seq
WHEN MATCHED THEN UPDATE SET id = n.id, kind = n.kind, reason = n.reason, at_utc = n.at_utc
WHEN NOT MATCHED THEN INSERT BY NAME
