-- Empties the scratch table of steps.
TRUNCATE staged_steps
