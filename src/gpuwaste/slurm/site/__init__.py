"""A site as Slurm has it: partitions, nodes, limits, billing, states, defaults."""
