-- Appends the verdicts of the JSON array $rows whose ids are not there yet; $lo and $hi are the least and the greatest of
-- them. Returns the actions of the new ones.
INSERT INTO verdicts BY NAME
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "id": "VARCHAR", "cluster": "VARCHAR", "at_utc_us": "BIGINT", "op": "VARCHAR", "policy": "VARCHAR",
        "mode": "VARCHAR", "action": "VARCHAR", "would_be": "VARCHAR", "held": "VARCHAR", "sampled": "BOOLEAN",
        "override": "VARCHAR", "user": "VARCHAR", "account": "VARCHAR", "partition": "VARCHAR", "qos": "VARCHAR",
        "name": "VARCHAR", "is_array": "BOOLEAN", "het_offset": "BIGINT", "run_job_id": "BIGINT", "gpus": "BIGINT",
        "time_limit_s": "BIGINT", "p": "MAP(VARCHAR, DOUBLE)", "quantiles": "VARCHAR",
        "triggers": "MAP(VARCHAR, DOUBLE)", "reasons": ["VARCHAR"], "lines": ["VARCHAR"], "script": "VARCHAR",
        "model_hash": "VARCHAR", "feature_hash": "VARCHAR", "latency_us": "BIGINT", "node": "VARCHAR",
        "taken_utc": "BIGINT"
    }]'), recursive := true)
) n
ANTI JOIN (SELECT id FROM verdicts WHERE id BETWEEN $lo AND $hi) known USING (id)
RETURNING action
