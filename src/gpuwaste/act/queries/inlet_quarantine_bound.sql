-- Forgets the oldest events that an inlet keeps aside, so that $most are left.
DELETE FROM inlet_quarantine
WHERE inlet = $inlet
AND rowid NOT IN (
    SELECT rowid FROM inlet_quarantine WHERE inlet = $inlet ORDER BY at_utc DESC, rowid DESC LIMIT $most
)
