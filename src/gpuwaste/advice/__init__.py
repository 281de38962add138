"""What is expected of a submission, and the advice on it: one decision for sbatch, predict, explain and replay.

Imports ledger and below.
"""
