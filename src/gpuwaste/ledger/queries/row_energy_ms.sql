        -- Of a row of hours or days. An older agent sent energy_j alone: it was measured all the time.
        coalesce(energy_ms, CASE WHEN energy_j IS NOT NULL THEN t1_ms - t0_ms END)
