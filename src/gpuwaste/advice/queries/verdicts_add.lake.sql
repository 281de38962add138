CREATE OR REPLACE TEMP TABLE new_verdicts AS
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, $shape), recursive := true)
) n
ANTI JOIN (SELECT id FROM verdicts WHERE id BETWEEN $lo AND $hi) known USING (id)
;
INSERT INTO verdicts BY NAME SELECT * FROM new_verdicts
;
SELECT action FROM new_verdicts
