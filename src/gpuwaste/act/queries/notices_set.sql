-- Moves one notice on; returns it where it stood as expected.
UPDATE notices
SET status = $status, detail = $detail, at_utc = $now, next_utc = $next_utc,
    tries = tries + CASE WHEN $status = 'sending' THEN 1 ELSE 0 END,
    document = CASE WHEN $status IN ('sending', 'later') THEN document ELSE '' END
WHERE kind = $kind AND "user" = $user AND period_end = $period_end AND NOT dry AND list_contains($was::VARCHAR[], status)
RETURNING "user"
