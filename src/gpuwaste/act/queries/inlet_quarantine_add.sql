-- Keeps events of an inlet that could not be taken, of the JSON array $rows, unless their bytes are kept already.
INSERT INTO inlet_quarantine
SELECT n.inlet, n.digest, n.at_utc, n.sent_id, n.kind, n.reason, n.raw
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "no": "BIGINT", "inlet": "VARCHAR", "digest": "VARCHAR", "at_utc": "BIGINT", "sent_id": "VARCHAR",
        "kind": "VARCHAR", "reason": "VARCHAR", "raw": "VARCHAR"
    }]'), recursive := true)
) n
ANTI JOIN inlet_quarantine q USING (inlet, digest)
QUALIFY row_number() OVER (PARTITION BY n.inlet, n.digest ORDER BY n.no) = 1
ORDER BY n.no
