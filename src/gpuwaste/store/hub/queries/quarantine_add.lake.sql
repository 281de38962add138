CREATE OR REPLACE TEMP TABLE new_quarantine AS
SELECT n.source, n.line, n.reason, n.raw, n.at_utc
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "source": "VARCHAR", "line": "BIGINT", "reason": "VARCHAR", "raw": "VARCHAR", "at_utc": "BIGINT"
    }]'), recursive := true)
) n
ANTI JOIN quarantine q ON q.source = n.source AND q.reason = n.reason AND q.raw = n.raw
;
INSERT INTO quarantine BY NAME SELECT * FROM new_quarantine
;
SELECT line FROM new_quarantine
