-- The judged runs of a selection, as its first common table expression: those of $rules, and those judged by now.
runs AS NOT MATERIALIZED (
    SELECT *
    FROM judged r
    WHERE
-- include: waste.judged_scope
    UNION ALL BY NAME
    SELECT * FROM judged_now
)
