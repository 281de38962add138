-- Appends the verdicts of the JSON array $rows whose ids are not there yet; $lo and $hi are the least and the greatest of
-- them. Returns the actions of the new ones.
INSERT INTO verdicts BY NAME
SELECT n.*
FROM (
    SELECT unnest(from_json_strict($rows::JSON, $shape), recursive := true)
) n
ANTI JOIN (SELECT id FROM verdicts WHERE id BETWEEN $lo AND $hi) known USING (id)
RETURNING action
