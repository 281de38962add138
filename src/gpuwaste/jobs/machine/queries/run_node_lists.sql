-- The hostlists of a cluster's runs, each once.
SELECT DISTINCT nodes FROM jobs WHERE cluster = $cluster AND "start" IS NOT NULL AND nodes <> ''
