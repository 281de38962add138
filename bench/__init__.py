"""Each published figure as a command: `make bench NAME=...` prints a table, then one line of JSON."""
