-- The judged runs of a selection that are stored.
    SELECT * FROM judged r
    WHERE
-- include: judged_scope
