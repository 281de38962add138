    -- Sums of column n by end state; what is counted is grouped by state before, since comparing texts of each run is slow.
    sum(n)::BIGINT AS ended,
    coalesce(sum(n) FILTER (state = 'COMPLETED'), 0)::BIGINT AS completed,
    coalesce(sum(n) FILTER (state = 'FAILED'), 0)::BIGINT AS failed,
    coalesce(sum(n) FILTER (state = 'TIMEOUT'), 0)::BIGINT AS timeout,
    coalesce(sum(n) FILTER (state = 'OUT_OF_MEMORY'), 0)::BIGINT AS out_of_memory,
    coalesce(sum(n) FILTER (state = 'CANCELLED'), 0)::BIGINT AS cancelled,
    coalesce(sum(n) FILTER (state IN {node_failed_states}), 0)::BIGINT AS node_fail,
    coalesce(sum(n) FILTER (state = ''), 0)::BIGINT AS unknown,
    coalesce(sum(n) FILTER (state NOT IN
        ('', 'COMPLETED', 'FAILED', 'TIMEOUT', 'OUT_OF_MEMORY', 'CANCELLED', 'NODE_FAIL', 'BOOT_FAIL')), 0)::BIGINT AS other
