"""Simulation of a trace of jobs under another scheduler, other limits or on another machine.

A trace is arrays of jobs (trace.py), a machine is what they run on, a scheduler is a file of schedulers/ that returns
their starts, and schedule_metrics.py evaluates the starts. May import history, slurm, store and core, and
numba, which no other room imports.
"""
