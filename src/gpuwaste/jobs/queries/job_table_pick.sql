-- Numbers the runs of a cluster that were submitted in [$since, $until) in the order of submission, for the queries that
-- make columns of them; with them the earlier ones of the JSON array $held, of those that have ended the ones of whose
-- GPUs the hub has learned since.
CREATE OR REPLACE TEMP TABLE picked_jobs AS
WITH held AS (
    SELECT unnest(
        from_json_strict($held::JSON, '[{"job_id": "BIGINT", "submit": "BIGINT", "ended": "BOOLEAN"}]'),
        recursive := true
    )
),
learnt AS (
    SELECT DISTINCT job_id, run_start FROM events WHERE kind = 'ledger' AND cluster = $cluster AND at_utc >= $since
),
chosen AS (
    SELECT * FROM jobs WHERE cluster = $cluster AND submit >= $since AND submit < $until
    UNION ALL
    SELECT j.*
    FROM jobs j
    JOIN held h USING (job_id, submit)
    WHERE
        j.cluster = $cluster
        AND j.submit < $since
        AND (NOT h.ended OR (j.job_id, j.run_start) IN (SELECT (job_id, run_start) FROM learnt))
)
SELECT
    row_number() OVER (ORDER BY submit, job_id, coalesce("start", 0)) - 1 AS row_no,
    cluster, job_id, run_start, submit, "user", account, "partition", qos, name, time_limit_s, req_tres, interactive,
    array_job_id IS NOT NULL AS is_array, "start", cpus, gpus, gpu_type, "end", elapsed_s, suspended_s, state, max_rss_b
FROM chosen
