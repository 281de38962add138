-- Ends what an earlier run of the hub, or an earlier period, left open: $was becomes $status.
UPDATE notices
SET status = $status, detail = $detail, at_utc = $now, document = ''
WHERE list_contains($was::VARCHAR[], status) AND period_end < $before AND ($kind IS NULL OR kind = $kind)
RETURNING "user"
