-- Sets the new details of runs where they are.
UPDATE jobs j
SET eligible = d.eligible,
    priority = d.priority,
    flags = d.flags,
    reason = d.reason,
    constraints = d.constraints,
    reservation = d.reservation,
    n_steps = d.n_steps,
    energy_j = d.energy_j,
    disk_read_b = d.disk_read_b,
    disk_write_b = d.disk_write_b,
    program = d.program
FROM detailed_jobs d
WHERE j.cluster = d.cluster AND j.job_id = d.job_id AND j.run_start = d.run_start
