-- The judged verdicts, the newest first, each with its jobs as Slurm prints them, and their states.
SELECT j.*, coalesce(r.job_ids, []) AS job_ids, coalesce(r.states, []) AS states
FROM judged_verdicts j
LEFT JOIN (
    SELECT id, list(DISTINCT printed_id ORDER BY printed_id) AS job_ids, list(DISTINCT state ORDER BY state) AS states
    FROM verdict_runs
    GROUP BY id
) r ON r.id = j.id
ORDER BY j.at_utc_us DESC, j.id
