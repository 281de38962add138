-- Puts the steps of the JSON array $rows into the scratch table.
INSERT INTO staged_steps BY NAME
SELECT unnest(from_json_strict($rows::JSON, $shape), recursive := true)
