-- The TRES of a cluster's allocations, each once.
SELECT DISTINCT alloc_tres FROM jobs WHERE cluster = $cluster AND "start" IS NOT NULL AND alloc_tres <> ''
