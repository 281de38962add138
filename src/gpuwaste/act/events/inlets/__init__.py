"""Transports of inlets: each file has SETTINGS, the type of its table, and `make(settings, where)`; all are loaded."""
