-- The number of the last event of the history stream; a part of a query.
    (SELECT greatest((SELECT coalesce(max(seq), 0) FROM events), (SELECT coalesce(max(seq), 0) FROM told_events)))
