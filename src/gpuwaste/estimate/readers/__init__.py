"""Readers of programs, one file per format: `recognizes(head)` and `read(stream, name)` -> Program.

A file is read, never run; each reader bounds what it takes in time and memory. hlo_*.py are parts of the HLO reader;
graph.py, steps.py, order.py, lives.py and assemble.py make the neutral form of any reader's graph.
"""
