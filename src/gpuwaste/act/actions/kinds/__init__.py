"""The kinds of actions: each file has KIND, and is found by being here."""
