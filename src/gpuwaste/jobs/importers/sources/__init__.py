"""The sources of job history, one file each: see `gpuwaste.jobs.importers.history_source` for what a file must have."""
