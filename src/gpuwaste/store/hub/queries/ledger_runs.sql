-- The runs that a report covers.
SELECT j.*, coalesce(p.whole_node, false) AS whole_node
FROM jobs j
LEFT JOIN partitions p ON p.cluster = j.cluster AND p.name = j."partition"
WHERE
-- include: ledger_scope
ORDER BY j.run_start, j.job_id
