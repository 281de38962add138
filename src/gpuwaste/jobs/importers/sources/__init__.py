"""The sources of job history, one file each: see `gpuwaste.jobs.importers.source` for what a file must have."""
