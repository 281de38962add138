"""One collector per file, each failing alone. Imports core and slurm."""
