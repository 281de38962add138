"""Calibration of a GPU type: the programs to measure, the job that measures them, and the records that it leaves.

job.py runs in the site's own environment, with jax or torch and without gpuwaste; the rest of this package prepares
and reads what it leaves. May import core, slurm and the rest of estimate.
"""
