-- The judged GPUs of the runs that ledger_jobs returns: those of a run by node and UUID, those without a name last.
SELECT
    * EXCLUDE (
        unknown_reason, unknown_ms, unknown_cut_ms, unseen_ms, whole_known_ms, whole_active, idle_before_ms,
        idle_run_before_ms, until_ms, own, mean_pct, seen_unknown_ms, memory_ratio, resident, active_ms, exempt_ms
    )
FROM ledger_gpus
SEMI JOIN (SELECT place FROM ledger_rows WHERE NOT $candidates OR candidate <> []) USING (place)
ORDER BY place, gpu_uuid = '', node, gpu_uuid
