"""The sources of job history, one module each; `gpuwaste.jobs.importers.history_source` describes what each needs."""
