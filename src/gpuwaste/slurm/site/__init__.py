"""A site in Slurm's terms: partitions, nodes, limits, billing, states, defaults."""
