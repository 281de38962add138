-- Keeps what the store does not hold already, column by column. The details, which only analytics reads, are left out:
-- nothing that was judged or told of a run depends on them.
CREATE OR REPLACE TEMP TABLE changed_jobs AS
WITH news AS (
    SELECT * EXCLUDE (
        eligible, priority, flags, reason, constraints, reservation, n_steps,
        energy_j, disk_read_b, disk_write_b, program
    )
    FROM staged_jobs
    EXCEPT
    SELECT * EXCLUDE (
        eligible, priority, flags, reason, constraints, reservation, n_steps,
        energy_j, disk_read_b, disk_write_b, program
    )
    FROM known_jobs
)
SELECT s.* FROM staged_jobs s SEMI JOIN news USING (cluster, job_id, run_start)
