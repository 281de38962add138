"""The current state of the cluster: GPUs held and idle, silent nodes, the queue."""
