-- Empties the scratch table before an import.
TRUNCATE staged_jobs
