-- By user and account: the jobs with GPUs of $cluster that ran and ended in [$from, $to), those that failed or were out of
-- memory, and those that reached their time limit.
SELECT
    "user",
    account,
    count(*) AS jobs,
    count(*) FILTER (state IN {failed_states}) AS failed,
    count(*) FILTER (state = 'TIMEOUT') AS timed_out
FROM jobs
WHERE cluster = $cluster AND gpus > 0 AND "start" IS NOT NULL AND "end" >= $from AND "end" < $to
GROUP BY "user", account
ORDER BY "user", account
