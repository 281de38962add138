"""The compared methods, one file each; `gpuwaste.models.evaluate.method` describes the content of a file."""
