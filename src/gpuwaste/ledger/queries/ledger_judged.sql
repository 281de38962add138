-- The rows of table judged of the runs that were judged last, in their order.
-- include: judged_rows
ORDER BY place
