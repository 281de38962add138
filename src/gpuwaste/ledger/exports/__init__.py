"""Runs in the formats of other tools, one file per format: TITLE, lines(runs, document) -> text lines, perhaps HEADER.

Each file here is a format of the same name. `runs` are the runs of the job's document to write: ended ones.
"""
