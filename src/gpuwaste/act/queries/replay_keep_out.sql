-- Takes the instants at which a run was kept out of table matched.
DELETE FROM matched
WHERE place IN (
    SELECT l.place
    FROM looked l
    JOIN keeps k ON
        k.cluster = l.cluster AND k.job_id = l.job_id AND k.run_start = l.run_start
        AND l.at_utc >= k.at_utc AND l.at_utc < k.until_utc
)
