    -- The class of a size: n holds 2^(n-1) + 1 to 2^n GPUs, nodes or CPUs; most jobs are small and need no logarithm.
    CASE WHEN size <= 1 THEN 0 WHEN size = 2 THEN 1 WHEN size <= 4 THEN 2 WHEN size <= 8 THEN 3 WHEN size <= 16 THEN 4
        ELSE ceil(log2(size))::INTEGER END AS level
