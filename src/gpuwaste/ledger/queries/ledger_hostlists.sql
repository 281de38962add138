-- The hostlists of picked runs with the other names by which nodes reported them.
SELECT p.nodes, list(DISTINCT s.node) AS seen
FROM ledger_seen s
JOIN picked_runs p USING (place)
WHERE p.nodes NOT IN ('', s.node)
GROUP BY p.nodes
