-- Appends what files of lines (slurm/accounting/use_lines.py) have of the use of GPUs, to a store that was new.
INSERT INTO accounted_use BY NAME
SELECT *
FROM read_csv(
    $files, columns = $columns, delim = $separator, nullstr = $null, header = false, auto_detect = false,
    quote = '', escape = '', new_line = '\n'
)
