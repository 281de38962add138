"""Slurm's scheduler on nodes: the main loop, backfill, preemption; compiled loops over a board of arrays (board.py)."""
