-- The sums of the own GPUs of rows, and of what is known of their energy.
    {
        'devices': coalesce(sum(own.devices), 0)::BIGINT,
        'alloc_ms': coalesce(sum(own.alloc_ms), 0)::BIGINT,
        'idle_ms': coalesce(sum(own.idle_ms), 0)::BIGINT,
        'low_ms': coalesce(sum(own.low_ms), 0)::BIGINT,
        'moderate_ms': coalesce(sum(own.moderate_ms), 0)::BIGINT,
        'high_ms': coalesce(sum(own.high_ms), 0)::BIGINT,
        'suspended_ms': coalesce(sum(own.suspended_ms), 0)::BIGINT,
        'pending_ms': coalesce(sum(own.pending_ms), 0)::BIGINT,
        'untouched_ms': coalesce(sum(own.untouched_ms), 0)::BIGINT,
        'idle_run_ms': coalesce(sum(own.idle_run_ms), 0)::BIGINT,
        'wasted_ms': coalesce(sum(own.wasted_ms), 0)::BIGINT,
        'pct_ms': coalesce(sum(own.pct_ms), 0)::BIGINT,
        'seen_ms': coalesce(sum(own.seen_ms), 0)::BIGINT,
        'energy_j': sum(own.energy_j)
    } AS own,
    sum(energy_ms)::BIGINT AS energy_ms,
    sum(split_j) AS split_j,
    sum(wasted_j) AS wasted_j,
    sum(cpu_energy_ms)::BIGINT AS cpu_energy_ms,
    sum(cpu_energy_j) AS cpu_energy_j
