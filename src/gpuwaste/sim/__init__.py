"""What another scheduler, other limits or another machine would have done to a trace of jobs.

A trace is arrays of jobs (trace.py), a machine is what they run on, a scheduler is a file of schedulers/ that returns
their starts, and schedule_metrics.py says what the starts are worth. May import history, slurm, store and core, and
numba, which no other room imports.
"""
