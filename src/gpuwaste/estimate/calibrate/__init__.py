"""Calibration of a GPU type: the programs to measure, the job that measures them, and the records that it writes.

site/run.py runs in the site's own environment, with jax or torch and without gpuwaste; the rest of this package
prepares the job and reads its records. May import core, slurm and the rest of estimate.
"""
