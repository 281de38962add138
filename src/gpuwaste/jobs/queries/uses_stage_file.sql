-- Puts the rows of a file that holds a JSON array into the scratch table.
INSERT INTO staged_uses BY NAME
SELECT * FROM read_json($file, format = 'array', maximum_object_size = 33554432, columns = $columns)
