        -- Rows from before it was stored: measured all the time.
        coalesce(energy_ms, CASE WHEN own.energy_j IS NOT NULL THEN own.alloc_ms - own.pending_ms END)
