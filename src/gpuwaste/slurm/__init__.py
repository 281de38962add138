"""Everything that reads Slurm. Imports core."""
