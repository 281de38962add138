-- How many events come after $after, when the first of them happened, and the last seq.
SELECT count(*) AS events, min(at_utc) AS first_utc, coalesce(max(seq), $after) AS last FROM events WHERE seq > $after
