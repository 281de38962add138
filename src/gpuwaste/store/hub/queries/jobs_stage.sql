-- Puts the job rows of the JSON array $rows into the scratch table.
INSERT INTO staged_jobs BY NAME
SELECT unnest(from_json_strict($rows::JSON, '[{
    "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "submit": "BIGINT", "printed_id": "VARCHAR",
    "array_job_id": "BIGINT", "array_task_id": "BIGINT", "het_job_id": "BIGINT", "het_offset": "BIGINT",
    "name": "VARCHAR", "user": "VARCHAR", "account": "VARCHAR", "group": "VARCHAR", "partition": "VARCHAR",
    "qos": "VARCHAR", "time_limit_s": "BIGINT", "req_tres": "VARCHAR", "submit_line": "VARCHAR",
    "interactive": "BOOLEAN", "start": "BIGINT", "restarts": "INTEGER", "nodes": "VARCHAR", "n_nodes": "INTEGER",
    "cpus": "INTEGER", "gpus": "INTEGER", "gpu_type": "VARCHAR", "alloc_tres": "VARCHAR", "mem_req_b": "BIGINT",
    "end": "BIGINT", "elapsed_s": "BIGINT", "suspended_s": "BIGINT", "state": "VARCHAR", "exit_code": "INTEGER",
    "exit_signal": "INTEGER", "total_cpu_s": "DOUBLE", "max_rss_b": "BIGINT", "verdict_id": "VARCHAR"
}]'), recursive := true)
