-- Keeps in the scratch table the largest memory and processor time that the store holds of a run, and its verdict. sacct
-- lists only the steps that overlap its window, so a run that spans several is told each time by a part of its steps;
-- another source, or an older Slurm while the job runs, does not tell the verdict.
UPDATE staged_jobs s
SET max_rss_b = greatest(s.max_rss_b, j.max_rss_b),
    total_cpu_s = greatest(s.total_cpu_s, j.total_cpu_s),
    verdict_id = CASE WHEN s.verdict_id = '' THEN j.verdict_id ELSE s.verdict_id END
FROM jobs j
WHERE j.cluster = s.cluster AND j.job_id = s.job_id AND j.run_start = s.run_start
