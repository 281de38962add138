"""Estimates of programs before they run: memory, step times, the GPUs on which they fit. Imports ledger and below."""
