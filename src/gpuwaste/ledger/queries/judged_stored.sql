-- The judged runs of a selection that are stored.
    SELECT * REPLACE (
-- include: judged_energy_ms
        AS energy_ms
    )
    FROM judged r
    WHERE
-- include: judged_scope
