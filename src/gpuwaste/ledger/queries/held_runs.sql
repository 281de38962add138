-- The runs that hold GPUs, in their order.
SELECT *
FROM picked_runs
ORDER BY place
