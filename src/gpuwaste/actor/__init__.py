"""The actor: the only daemon that changes anything in Slurm; it executes approved actions from the hub, one by one."""
