CREATE OR REPLACE TEMP TABLE moved_actions AS
SELECT id FROM actions WHERE id = $id AND list_contains($was, status)
;
-- include: actions_moved
;
SELECT id FROM moved_actions
