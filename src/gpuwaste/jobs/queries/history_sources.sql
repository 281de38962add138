-- Each source with its imports, its pages, and where it stands.
SELECT
    i.kind, i.key, i.cluster, count(DISTINCT i.id) AS imports,
    count(DISTINCT i.id) FILTER (i.ended_utc IS NULL) AS cut_off,
    arg_max(i.end_rule, i.id) FILTER (i.end_rule IS NOT NULL) AS end_rule,
    count(p.number) AS pages, coalesce(sum(p.size_b), 0)::BIGINT AS size_b,
    coalesce(sum(p.packed_b), 0)::BIGINT AS packed_b, coalesce(sum(p.runs), 0)::BIGINT AS runs,
    coalesce(sum(p.changed), 0)::BIGINT AS changed, coalesce(sum(p.bad), 0)::BIGINT AS bad, max(p.at_utc) AS at_utc
FROM imports i
LEFT JOIN pages p ON p.import_id = i.id
GROUP BY i.kind, i.key, i.cluster
ORDER BY i.kind, i.key
