"""The balance: each GPU-second of the machine in exactly one class, with causes where GPUs are free although jobs wait.

types.py has the classes and the inputs, sweep.py turns inputs into sums by hour, reads.py reads the inputs from a
store, keeper.py keeps the sums of the hub up to date.
"""
