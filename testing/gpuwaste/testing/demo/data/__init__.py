"""What the demo estimates: a training step, and the programs that the probe wrote of it."""
