"""What the cluster does now: GPUs held and idle, silent nodes, the queue."""
