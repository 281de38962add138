"""The SlurmClient and its adapters: Slurm's commands, slurmrestd, pyslurm."""
