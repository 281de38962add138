    -- An end state as views count it.
    CASE state
        WHEN 'COMPLETED' THEN 'completed'
        WHEN 'FAILED' THEN 'failed'
        WHEN 'TIMEOUT' THEN 'timeout'
        WHEN 'OUT_OF_MEMORY' THEN 'out_of_memory'
        WHEN 'CANCELLED' THEN 'cancelled'
        WHEN 'NODE_FAIL' THEN 'node_fail'
        WHEN 'BOOT_FAIL' THEN 'node_fail'
        WHEN '' THEN 'unknown'
        ELSE 'other'
    END AS ended
