"""Generators of loads, one file each: TITLE, PARAMETERS by name, NEEDS_LOG, and `drawn(values, log)` -> Load.

Equal values give equal jobs. Where NEEDS_LOG is set, `log` is the history to draw from, with its machine's size.
"""
