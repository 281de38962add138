-- Rows of moments, from a JSON array for each column: DuckDB reads them quicker than objects, or than all in one text.
INSERT INTO moments BY NAME
SELECT
    unnest(from_json($place, '["BIGINT"]')) AS place,
    unnest(from_json($cluster, '["VARCHAR"]')) AS cluster,
    unnest(from_json($job_id, '["BIGINT"]')) AS job_id,
    unnest(from_json($run_start, '["BIGINT"]')) AS run_start,
    unnest(from_json($at_utc, '["BIGINT"]')) AS at_utc,
    unnest(from_json($idle_s, '["DOUBLE"]')) AS "ledger.idle_s",
    unnest(from_json($idle_gpus, '["BIGINT"]')) AS "ledger.idle_gpus",
    unnest(from_json($longest_idle_s, '["DOUBLE"]')) AS "ledger.longest_idle_s",
    unnest(from_json($untouched_gpus, '["BIGINT"]')) AS "ledger.untouched_gpus",
    unnest(from_json($wasted_gpu_s, '["DOUBLE"]')) AS "ledger.wasted_gpu_s",
    unnest(from_json($exempt_gpu_s, '["DOUBLE"]')) AS "ledger.exempt_gpu_s",
    unnest(from_json($age_s, '["DOUBLE"]')) AS "ledger.age_s",
    unnest(from_json($coverage, '["DOUBLE"]')) AS "ledger.coverage",
    unnest(from_json($hang_s, '["DOUBLE"]')) AS "ledger.hang_s",
    unnest(from_json($cpu_cores, '["DOUBLE"]')) AS "ledger.cpu_cores",
    unnest(from_json($idle_nodes, '["VARCHAR"]')) AS "ledger.idle_nodes",
    unnest(from_json($idle_nodes_s, '["DOUBLE"]')) AS "ledger.idle_nodes_s"
