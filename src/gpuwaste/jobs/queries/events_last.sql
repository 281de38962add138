-- The last seq of the stream after $after; $after where nothing comes after it.
SELECT greatest(
    (SELECT coalesce(max(seq), $after) FROM events WHERE seq > $after),
    (SELECT coalesce(max(seq), $after) FROM told_events WHERE seq > $after)
) AS last
