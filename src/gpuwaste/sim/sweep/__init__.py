"""Sweeps: a study's parameters and seeds as cases, run by processes of this host or by Slurm, each kept as it ends."""
