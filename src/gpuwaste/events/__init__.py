"""What happens to jobs, GPUs, nodes and models, told to other systems: the catalogue, the envelope, outlets.

Imports history, store, wire and core; knows nothing of the hub that runs it.
"""
