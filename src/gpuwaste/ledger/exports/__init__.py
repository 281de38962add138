"""Runs as other tools read them, one file per format: TITLE, lines(runs, document) -> text lines, perhaps HEADER.

A file is found by being there; its name is the format's. `runs` are those of the job's document to write: ended ones.
"""
