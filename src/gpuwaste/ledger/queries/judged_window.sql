-- Follows judged_runs: what of the runs lies between $from_s and $to_s.
parts AS NOT MATERIALIZED (
    SELECT * FROM runs WHERE NOT $cut OR (run_start >= $from_s AND coalesce("end", $now) <= $to_s)
    UNION ALL BY NAME
    SELECT * FROM judged_parts
)
