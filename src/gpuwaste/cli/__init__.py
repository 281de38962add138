"""The gpuwaste command: main and one file per command. Imports everything below."""
