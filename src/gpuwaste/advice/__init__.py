"""What is expected of a submission, and what is said of it: one decision for sbatch, predict, explain and replay.

Imports ledger and below.
"""
