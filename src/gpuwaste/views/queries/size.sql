    -- What a run is counted by: its GPUs, else its nodes, else its CPUs.
    CASE WHEN gpus > 0 THEN 1 WHEN n_nodes > 0 THEN 2 ELSE 3 END AS kind,
    CASE WHEN gpus > 0 THEN gpus WHEN n_nodes > 0 THEN n_nodes ELSE coalesce(cpus, 1) END AS size
