"""Accounting as sacct, slurmrestd and files tell it, as JobRecords."""
