"""The methods that are compared, one file each; `gpuwaste.models.evaluate.method` says what a file has."""
