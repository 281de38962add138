-- Keeps bad rows aside; one that was kept before is not kept again, since the overlap reads it many times.
INSERT INTO quarantine
-- include: quarantine_sent
RETURNING line
