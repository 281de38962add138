-- The users with runs with GPUs that ended after $from_s, by cluster and in the order in which their days are stored: how many
-- runs of theirs are read, $of_jobs of such jobs, and when the newest ended. Those with the newest runs, $most in all.
SELECT
    cluster,
    "user",
-- include: day_part
    ,
    sum(runs)::BIGINT AS runs,
    max(newest) AS newest
FROM (
    SELECT
        cluster,
        "user",
-- include: right_size_name
        ,
        least(count(*), $of_jobs) AS runs,
        max("end") AS newest
    FROM jobs
    WHERE
-- include: right_size_ended
    GROUP BY cluster, "user", such, gpus, gpu_type
)
GROUP BY cluster, "user"
QUALIFY sum(sum(runs)) OVER (ORDER BY max(newest) DESC, cluster, "user") <= $most
ORDER BY cluster, part, "user"
