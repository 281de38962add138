-- The unknown and exempt time of a run by reason, a row for each.
        unnest(
            list_transform(map_entries(own.unknown), lambda e: {'of': 'own', 'what': 'unknown', 'reason': e.key, 'ms': e.value})
            || list_transform(map_entries(own.exempt), lambda e: {'of': 'own', 'what': 'exempt', 'reason': e.key, 'ms': e.value})
            || coalesce(
                list_transform(map_entries(shared.unknown), lambda e: {'of': 'shared', 'what': 'unknown', 'reason': e.key, 'ms': e.value})
                || list_transform(map_entries(shared.exempt), lambda e: {'of': 'shared', 'what': 'exempt', 'reason': e.key, 'ms': e.value}),
                []
            )
        ) AS part
