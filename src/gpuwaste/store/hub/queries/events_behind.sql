-- How many events come after $after, when the first of them happened, and the last seq.
SELECT count(*) AS events, min(at_utc) AS first_utc, coalesce(max(seq), $after) AS last
FROM (
    SELECT seq, at_utc FROM events WHERE seq > $after
    UNION ALL
    SELECT seq, at_utc FROM told_events WHERE seq > $after
)
