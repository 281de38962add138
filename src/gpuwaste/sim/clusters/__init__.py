"""Where a model of a cluster comes from: a file (formats/, one file each) or a live Slurm (live.py).

`read_machine` and `live_machine` are the two doors; every model that leaves them went through checked.py.
"""
