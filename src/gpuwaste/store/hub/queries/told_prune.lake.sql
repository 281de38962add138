-- The event with the highest number stays: the next one is numbered after it.
DELETE FROM told_events
WHERE kind = 'job.verdict' AND at_utc < $before AND seq <
-- include: event_seq
