-- The runs that were judged last on this connection with their findings, as table judged has them.
SELECT
    r.* EXCLUDE (place, node_cpu_ratio, due_coverage, candidate),
    $rules::INTEGER AS rules,
    coalesce(c.cause_kinds, []) AS cause_kinds,
    coalesce(c.cause_s, []) AS cause_s,
    coalesce(c.causes, '') AS causes
FROM ledger_rows r
LEFT JOIN ledger_causes c USING (place)
