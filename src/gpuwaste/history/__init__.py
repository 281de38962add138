"""What was known at an instant: the job table, its state by key, windows, following events, replay.

May import store, slurm, wire and core. What is computed from it (features, labels, predictions) is predict's.
"""
