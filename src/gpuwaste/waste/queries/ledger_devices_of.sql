-- The judged GPUs of the runs that ledger_jobs returns: those of a run by node and UUID, those without a name last.
SELECT * FROM ledger_gpus
SEMI JOIN (SELECT place FROM ledger_rows WHERE NOT $candidates OR candidate) USING (place)
ORDER BY place, gpu_uuid = '', node, gpu_uuid
