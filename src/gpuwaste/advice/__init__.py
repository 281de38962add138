"""Predictions and policies come to one decision, the same for sbatch, predict, explain and replay.

Imports predict, policy, history, slurm (what a site's partitions give) and core. `adviser` runs without the extra
`predict`: whoever has no predictor brings what the hub expects.
"""
