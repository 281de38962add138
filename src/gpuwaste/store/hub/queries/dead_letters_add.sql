-- Keeps events that an outlet could not hand over, of the JSON array $rows; the newest reason stands.
INSERT OR REPLACE INTO dead_letters (outlet, seq, id, kind, reason, at_utc)
SELECT unnest(from_json_strict($rows::JSON, '[{
    "outlet": "VARCHAR", "seq": "BIGINT", "id": "VARCHAR", "kind": "VARCHAR", "reason": "VARCHAR", "at_utc": "BIGINT"
}]'), recursive := true)
