-- Unknown and exempt GPU-milliseconds between the edges of the window by reason, by user, account and partition.
WITH
-- include: waste.judged_runs
,
-- include: waste.judged_window
SELECT "user", account, "partition", part.of AS of, part.what AS what, part.reason AS reason, sum(part.ms)::BIGINT AS ms
FROM (
    SELECT
        "user",
        account,
        "partition",
        unnest(
            list_transform(map_entries(own.unknown), lambda e: {'of': 'own', 'what': 'unknown', 'reason': e.key, 'ms': e.value})
            || list_transform(map_entries(own.exempt), lambda e: {'of': 'own', 'what': 'exempt', 'reason': e.key, 'ms': e.value})
            || coalesce(
                list_transform(map_entries(shared.unknown), lambda e: {'of': 'shared', 'what': 'unknown', 'reason': e.key, 'ms': e.value})
                || list_transform(map_entries(shared.exempt), lambda e: {'of': 'shared', 'what': 'exempt', 'reason': e.key, 'ms': e.value}),
                []
            )
        ) AS part
    FROM parts
    WHERE shared IS NOT NULL OR cardinality(own.unknown) > 0 OR cardinality(own.exempt) > 0
)
GROUP BY ALL
