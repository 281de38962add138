"""The formats of Slurm and of logs: hostlists, times, conf files, SWF, CSV."""
