"""The ledger: hours, what runs did with their GPUs, what was wasted and why. Imports jobs and below."""
