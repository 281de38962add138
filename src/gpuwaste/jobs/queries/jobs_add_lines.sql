-- Appends the jobs of files of lines (slurm/accounting/sacct_table.py), to a store that was new.
INSERT INTO jobs BY NAME
SELECT *, '' AS name, '' AS "group", '' AS submit_line, '' AS verdict_id
FROM read_csv(
    $files, columns = $columns, delim = $separator, nullstr = $null, header = false, auto_detect = false,
    quote = '', escape = '', new_line = '\n', buffer_size = 8388608, max_line_size = 2000000
)
