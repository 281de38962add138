"""The sources of job history, one file each: see `gpuwaste.models.history.source` for what a file must have."""
