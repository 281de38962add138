-- The rows of the JSON array $rows as table judged has them.
SELECT unnest(r)
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "rules": "INTEGER", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "end": "BIGINT",
        "user": "VARCHAR", "account": "VARCHAR", "partition": "VARCHAR", "printed_id": "VARCHAR",
        "array_job_id": "BIGINT", "array_task_id": "BIGINT", "name": "VARCHAR", "state": "VARCHAR", "gpus": "BIGINT",
        "gpu_type": "VARCHAR", "whole_node": "BOOLEAN", "beyond": "BIGINT", "conflict": "BOOLEAN",
        "own": {
            "devices": "BIGINT", "alloc_ms": "BIGINT", "idle_ms": "BIGINT", "low_ms": "BIGINT",
            "moderate_ms": "BIGINT", "high_ms": "BIGINT", "suspended_ms": "BIGINT", "pending_ms": "BIGINT",
            "untouched_ms": "BIGINT", "idle_run_ms": "BIGINT", "wasted_ms": "BIGINT", "pct_ms": "BIGINT",
            "seen_ms": "BIGINT", "energy_j": "DOUBLE", "unknown": "MAP(VARCHAR, BIGINT)",
            "exempt": "MAP(VARCHAR, BIGINT)"
        },
        "shared": {
            "devices": "BIGINT", "alloc_ms": "BIGINT", "idle_ms": "BIGINT", "low_ms": "BIGINT",
            "moderate_ms": "BIGINT", "high_ms": "BIGINT", "suspended_ms": "BIGINT", "pending_ms": "BIGINT",
            "untouched_ms": "BIGINT", "idle_run_ms": "BIGINT", "wasted_ms": "BIGINT", "pct_ms": "BIGINT",
            "seen_ms": "BIGINT", "energy_j": "DOUBLE", "unknown": "MAP(VARCHAR, BIGINT)",
            "exempt": "MAP(VARCHAR, BIGINT)"
        },
        "level_devices": ["BIGINT"], "level_ms": ["BIGINT"], "under_devices": "BIGINT", "under_ms": "BIGINT",
        "asked_devices": "BIGINT", "cpu_used_s": "DOUBLE", "cpu_held_s": "DOUBLE", "memory_ratio": "DOUBLE",
        "small": {
            "until_ms": "BIGINT", "pct": "DOUBLE", "devices": "BIGINT", "memory": "DOUBLE", "memory_unknown": "BIGINT"
        },
        "cause_kinds": ["VARCHAR"], "cause_s": ["DOUBLE"], "causes": "VARCHAR"
    }]')) AS r
)
