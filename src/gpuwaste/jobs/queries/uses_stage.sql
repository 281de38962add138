-- Puts the rows of the JSON array $rows into the scratch table.
INSERT INTO staged_uses BY NAME
SELECT unnest(from_json_strict($rows::JSON, $shape), recursive := true)
