CREATE OR REPLACE TEMP TABLE new_actions AS
-- include: actions_sent
;
INSERT INTO actions BY NAME SELECT * FROM new_actions
;
SELECT id FROM new_actions
