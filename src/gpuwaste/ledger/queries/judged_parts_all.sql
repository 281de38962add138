-- The parts of runs that an edge of the window cuts.
SELECT * FROM judged_parts
