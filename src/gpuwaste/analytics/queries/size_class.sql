    -- A class of size: by GPUs, else nodes, else CPUs; class n holds 2^(n-1) + 1 to 2^n of them.
    CASE WHEN gpus > 0 THEN 'gpus' WHEN n_nodes > 0 THEN 'nodes' ELSE 'cpus' END AS kind,
    ceil(log2(greatest(1, CASE WHEN gpus > 0 THEN gpus WHEN n_nodes > 0 THEN n_nodes ELSE coalesce(cpus, 1) END)))::INTEGER AS level
