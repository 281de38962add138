-- Notices to send now, the largest waste first.
SELECT * FROM notices
WHERE NOT dry AND status IN ('due', 'later') AND next_utc <= $now
ORDER BY kind, wasted_s DESC, "user"
