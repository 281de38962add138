"""Estimates of programs before they run: memory, step times, on which GPUs they fit. Imports ledger and below."""
