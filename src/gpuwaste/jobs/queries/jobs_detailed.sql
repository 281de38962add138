-- Keeps the details that are new of runs that are otherwise as the store holds them.
CREATE OR REPLACE TEMP TABLE detailed_jobs AS
SELECT cluster, job_id, run_start, eligible, priority, flags, reason, constraints, reservation,
    n_steps, energy_j, disk_read_b, disk_write_b, program
FROM staged_jobs
ANTI JOIN changed_jobs USING (cluster, job_id, run_start)
EXCEPT
SELECT cluster, job_id, run_start, eligible, priority, flags, reason, constraints, reservation,
    n_steps, energy_j, disk_read_b, disk_write_b, program
FROM known_jobs
