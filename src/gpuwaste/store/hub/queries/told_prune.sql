-- Removes the events of verdicts that are kept no more.
DELETE FROM told_events WHERE kind = 'job.verdict' AND at_utc < $before
