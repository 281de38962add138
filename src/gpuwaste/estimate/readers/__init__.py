"""Readers of programs, one file per format: `recognizes(head)` and `read(stream, name)` -> Program.

A file is read, never run; each reader limits its time and memory. hlo_*.py are parts of the HLO reader; graph.py,
graph_steps.py, buffer_lifetimes.py and assemble.py make the neutral form from any reader's graph.
"""
