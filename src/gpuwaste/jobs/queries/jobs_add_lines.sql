-- Appends the jobs of a file of lines (slurm/accounting/sacct_table.py), to a store that nothing else was told of.
INSERT INTO jobs BY NAME
SELECT *, '' AS name, '' AS "group", '' AS submit_line, '' AS verdict_id
FROM read_csv(
    $file, columns = $columns, delim = $separator, nullstr = $null, header = false, auto_detect = false,
    quote = '', escape = '', new_line = '\n'
)
