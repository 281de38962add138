-- Stores the judged runs behind $after up to $last, in their order.
INSERT INTO judged BY NAME
-- include: judged_rows
WHERE place > $after AND place <= $last
