-- How long jobs on $cluster waited for each GPU type by their number of GPUs, of those that started after $from_s: seconds at the
-- median and the 90th percentile, and the partition in which most of them ran. Array tasks count once per array.
SELECT
    gpu_type,
    gpus,
    count(*) AS jobs,
    quantile_disc(waited_s, 0.5) AS p50_s,
    quantile_disc(waited_s, 0.9) AS p90_s,
    mode("partition") AS most_in,
    list_distinct(list("partition")) AS partitions
FROM (
    SELECT
        gpu_type,
        gpus,
        any_value("partition") AS "partition",
        min(greatest("start" - greatest(coalesce(eligible, submit), submit), 0)) AS waited_s
    FROM jobs
    WHERE cluster = $cluster AND "start" > $from_s AND gpus > 0 AND gpu_type <> '' AND NOT contains(gpu_type, ',') AND coalesce(reservation, '') = ''
    GROUP BY gpu_type, gpus, coalesce(array_job_id, job_id)
)
GROUP BY gpu_type, gpus
