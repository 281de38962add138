"""The ledger and the findings, one file per finding. Imports store, slurm and core."""
