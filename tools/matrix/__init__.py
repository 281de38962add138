"""`make matrix`: the submit path on each release of Slurm that we promise, with the real daemons and commands."""
