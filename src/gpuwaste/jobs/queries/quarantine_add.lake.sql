CREATE OR REPLACE TEMP TABLE new_quarantine AS
-- include: quarantine_sent
;
INSERT INTO quarantine BY NAME SELECT * FROM new_quarantine
;
SELECT line FROM new_quarantine
