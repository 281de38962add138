"""What a case of a sweep does, one file each: TITLE, PARAMETERS, MEASURES, and `rows(values, seed, folder)`.

PARAMETERS are the names that a study may set, with their defaults (None: it has to be set). `rows` returns the
results of one case: a row for each scheduler, configuration or whatever the experiment compares, of texts and
numbers; MEASURES are the columns that a summary averages. `folder` is that of the study, where its files are. Equal
values give equal rows.
"""
