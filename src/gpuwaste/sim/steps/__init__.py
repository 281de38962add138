"""Steps of time travel, one file each: TITLE, PARAMETERS by name, and `applied(table, values)`, which returns a table.

The first of the PARAMETERS has the step's own name: `--step stretch=1.2`. Equal values give equal jobs. Waits of the
log do not outlast a step: every start becomes the submission.
"""
