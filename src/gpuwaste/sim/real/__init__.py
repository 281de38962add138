"""The real slurmctld as engine: a trace is played on Slurm's own daemons, with virtual nodes and a faster clock.

`engine` plays an ensemble of runs; `conf` writes the configuration of a ClusterModel, `jobs` makes submissions of a
history, `clock` and `daemons` start what a run needs and end it, `player` submits and waits, `outcomes` reads what
slurmctld wrote about each job, `ensemble` compares the runs.
"""
