-- The judged runs of a selection, as its first common table expression: those of $rules, and those judged by now.
runs AS NOT MATERIALIZED (
-- include: judged_stored
    UNION ALL BY NAME
    SELECT * FROM judged_now
)
