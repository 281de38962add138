-- The script of each failed run whose verdict knows it.
SELECT j."user", j.name, j.job_id, v.script
FROM jobs j JOIN verdicts v ON v.id = j.verdict_id
WHERE j.cluster = $cluster AND j.state IN {failed_states} AND v.script <> ''
