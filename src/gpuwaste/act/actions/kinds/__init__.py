"""The kinds of actions: each file has KIND; every file in this directory is loaded."""
