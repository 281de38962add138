-- The action to take next, of the kinds $kinds: first one that was sent without an outcome, then the oldest that may be.
-- Of those that rules want only the ids $confirmed may be; null: all of them.
SELECT *
FROM actions
WHERE list_contains($kinds, kind)
    AND (
        status = 'sent'
        OR (
            $fresh
            AND expires_utc > $now
            AND (status = 'approved' OR (status = 'intended' AND approve = 'none'))
            AND (rule = '' OR $confirmed::VARCHAR[] IS NULL OR list_contains($confirmed::VARCHAR[], id))
        )
    )
ORDER BY status <> 'sent', decided_utc, id
LIMIT 1
