-- The keeps that ended after $since or are active; of a run the one that ends last comes last.
SELECT * FROM keeps WHERE until_utc > $since ORDER BY until_utc, id, cluster, job_id, run_start
