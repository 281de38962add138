-- The first start of the runs that have not ended. It lets the store skip the blocks before it, which their missing ends
-- do not: to look for these alone reads one column.
SELECT min("start") AS first FROM jobs WHERE "end" IS NULL;
