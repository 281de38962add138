"""Schedulers, one file each: TITLE, and `starts(submit, run, believed, limit, procs, total)`.

The arguments are arrays of n jobs in the order of submission (seconds, processors) and the processors of the machine;
`believed` is the walltime that the scheduler plans with, `limit` what a job that outlasts it is planned with then.
Every job fits the machine. The events of one instant are taken in the order end, submission, start.
"""
