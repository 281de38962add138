"""The families of the catalogue: each file in this folder has KINDS and is loaded."""
