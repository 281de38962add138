-- The runs of a cluster that have not ended, or ended after $ended_after, with their hostlists.
SELECT job_id, run_start, nodes, "end"
FROM jobs
WHERE
    cluster = $cluster
    AND "start" IS NOT NULL
    AND ("end" IS NULL OR "end" > $ended_after)
