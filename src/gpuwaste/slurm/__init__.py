"""Slurm as the product reads it. Imports core."""
