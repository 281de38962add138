"""Accounting data from sacct, slurmrestd and files, as JobRecords."""
