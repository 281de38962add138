"""The families of the catalogue: each file has KINDS, and is found by being here."""
