"""Reads Slurm: the SlurmClient protocol, its adapters and the parsers. Imports core only."""
