"""The sources of job history, one file each: see `gpuwaste.ingest.source` for what a file must have."""
