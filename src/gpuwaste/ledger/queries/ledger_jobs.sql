-- The judged runs in their order, with those that have not started; with $candidates those that may have a finding.
SELECT
    r.*,
    b.begin_ms,
    b.until_ms,
    b.ran_ms,
    coalesce(l.due_coverage, 1.0) AS due_coverage,
    coalesce(l.beyond, 0) AS beyond,
    l.node_cpu_ratio,
    l.cpu_used_s,
    l.cpu_held_s,
    l.memory_ratio,
    l.small,
    coalesce(l.candidate, []) AS candidate
FROM picked_runs r
LEFT JOIN ledger_spans b USING (place)
LEFT JOIN ledger_rows l USING (place)
WHERE NOT $candidates OR l.candidate <> []
ORDER BY r.place
