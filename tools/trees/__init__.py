"""Debian systems in folders: base trees of a suite with its Slurm, and layers of further packages over them.

Each is made by a recipe and has a stamp of it; what has another stamp, or none, is made anew. `store.py` says where
they lie and makes them, `view.py` runs a command in one.
"""
