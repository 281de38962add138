-- The judged runs of a selection that are stored.
    SELECT * REPLACE (
-- include: waste.judged_energy_ms
        AS energy_ms
    )
    FROM judged r
    WHERE
-- include: waste.judged_scope
