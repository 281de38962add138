-- When the changed runs were submitted, started and ended.
SELECT submit, "start", "end" FROM changed_jobs
