        -- Of a row of hours or days. An older agent sent energy_j alone: none of it was idle, all of it, or it is not known.
        coalesce(idle_energy_j, CASE
            WHEN coalesce(util_ms[list_position(pct, 0)], 0) = 0 THEN energy_j * 0
            WHEN util_ms[list_position(pct, 0)] >= t1_ms - t0_ms THEN energy_j
        END)
