-- How many events come after $after, and when the first of them happened.
SELECT count(*) AS events, min(at_utc) AS first_utc
FROM (
    SELECT at_utc FROM events WHERE seq > $after
    UNION ALL
    SELECT at_utc FROM told_events WHERE seq > $after
)
