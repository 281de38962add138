-- Jobs of a cluster that wait, by partition, by what they ask for, and by the tasks that one record of an array stands for.
SELECT
    "partition",
    req_tres,
    CASE WHEN contains(printed_id, '[') THEN printed_id ELSE '' END AS tasks,
    count(*) AS jobs,
    min(submit) AS oldest
FROM jobs
WHERE state = 'PENDING' AND "start" IS NULL AND "end" IS NULL AND ($cluster IS NULL OR cluster = $cluster)
GROUP BY ALL
ORDER BY ALL
