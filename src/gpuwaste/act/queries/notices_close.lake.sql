CREATE OR REPLACE TEMP TABLE closed_notices AS
SELECT "user"
FROM notices
WHERE list_contains($was::VARCHAR[], status) AND period_end < $before AND ($kind IS NULL OR kind = $kind)
;
UPDATE notices
SET status = $status, detail = $detail, at_utc = $now, document = ''
WHERE list_contains($was::VARCHAR[], status) AND period_end < $before AND ($kind IS NULL OR kind = $kind)
;
SELECT "user" FROM closed_notices
