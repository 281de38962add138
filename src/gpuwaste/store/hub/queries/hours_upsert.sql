-- Upserts the rows of the JSON array $rows, one per key: the highest seq wins, and final, once said, stays. $lo and $hi
-- are the least and the greatest hour_utc among them: no other part of the table is read. Returns the rows that changed.
MERGE INTO hours h
USING (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "node": "VARCHAR", "gpu_uuid": "VARCHAR",
        "hour_utc": "BIGINT", "seq": "BIGINT", "final": "BOOLEAN", "share": "DOUBLE", "t0_ms": "BIGINT",
        "t1_ms": "BIGINT", "pct": ["UTINYINT"], "util_ms": ["INTEGER"], "idle_run_ms": "INTEGER",
        "unknown_reason": ["VARCHAR"], "unknown_ms": ["INTEGER"], "suspended_ms": "INTEGER",
        "proc_seen": "BOOLEAN", "mem_max_b": "BIGINT", "mem_total_b": "BIGINT", "energy_j": "DOUBLE",
        "last_active_ms": "BIGINT", "power_w_at_full": "DOUBLE", "power_limit_w": "DOUBLE",
        "sm_ratio_at_full": "DOUBLE", "cpu_s": "DOUBLE", "host_mem_max_b": "BIGINT", "map_source": "VARCHAR",
        "confidence": "VARCHAR"
    }]'), recursive := true)
) s
ON h.hour_utc BETWEEN $lo AND $hi
    AND h.cluster = s.cluster AND h.job_id = s.job_id AND h.run_start = s.run_start
    AND h.node = s.node AND h.gpu_uuid = s.gpu_uuid AND h.hour_utc = s.hour_utc
WHEN MATCHED AND s.seq > h.seq THEN UPDATE SET
    seq = s.seq,
    final = h.final OR s.final,
    share = s.share,
    t0_ms = s.t0_ms,
    t1_ms = s.t1_ms,
    pct = s.pct,
    util_ms = s.util_ms,
    idle_run_ms = s.idle_run_ms,
    unknown_reason = s.unknown_reason,
    unknown_ms = s.unknown_ms,
    suspended_ms = s.suspended_ms,
    proc_seen = s.proc_seen,
    mem_max_b = s.mem_max_b,
    mem_total_b = s.mem_total_b,
    energy_j = s.energy_j,
    last_active_ms = s.last_active_ms,
    power_w_at_full = s.power_w_at_full,
    power_limit_w = s.power_limit_w,
    sm_ratio_at_full = s.sm_ratio_at_full,
    cpu_s = s.cpu_s,
    host_mem_max_b = s.host_mem_max_b,
    map_source = s.map_source,
    confidence = s.confidence
WHEN MATCHED AND s.final AND NOT h.final THEN UPDATE SET final = true
WHEN NOT MATCHED THEN INSERT BY NAME
RETURNING cluster, job_id, run_start, final
