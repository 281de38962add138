"""Actions: what may be done to a run or a node, one file each: its options, how it is seen, done and confirmed.

May import store, slurm, wire and core; nothing here decides anything: rules do, people approve, the actor acts.
"""
