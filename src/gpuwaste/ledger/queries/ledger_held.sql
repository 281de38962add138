    -- Of the jobs j those that held GPUs, or reported shares of any.
    AND (
        j.gpus > 0
        OR contains(j.alloc_tres, 'gres/shard')
        OR contains(j.alloc_tres, 'gres/mps')
        OR (j.cluster, j.job_id, j.run_start) IN (SELECT (cluster, job_id, run_start) FROM hours WHERE share < 1)
        OR (j.cluster, j.job_id, j.run_start) IN (SELECT (cluster, job_id, run_start) FROM days WHERE share < 1)
    )
