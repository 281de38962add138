-- Keeps in the scratch table the largest memory, processor time and sums over steps that the store holds of a run, its
-- verdict, and the details that are not told. sacct lists only the steps that overlap its window, so a run that spans
-- several is told each time by a part of its steps; another source, or an older Slurm while the job runs, does not tell
-- the verdict.
UPDATE staged_jobs s
SET max_rss_b = greatest(s.max_rss_b, j.max_rss_b),
    total_cpu_s = greatest(s.total_cpu_s, j.total_cpu_s),
    verdict_id = CASE WHEN s.verdict_id = '' THEN j.verdict_id ELSE s.verdict_id END,
    eligible = coalesce(s.eligible, j.eligible),
    priority = coalesce(s.priority, j.priority),
    flags = coalesce(s.flags, j.flags),
    reason = coalesce(s.reason, j.reason),
    constraints = coalesce(s.constraints, j.constraints),
    reservation = coalesce(s.reservation, j.reservation),
    n_steps = greatest(s.n_steps, j.n_steps),
    energy_j = greatest(s.energy_j, j.energy_j),
    disk_read_b = greatest(s.disk_read_b, j.disk_read_b),
    disk_write_b = greatest(s.disk_write_b, j.disk_write_b),
    program = coalesce(s.program, j.program)
FROM known_jobs j
WHERE j.cluster = s.cluster AND j.job_id = s.job_id AND j.run_start = s.run_start
