-- The facts of nodes on which GPU jobs of one node ended in the last 24 hours (jobs of several nodes blame none of them),
-- or GPUs that runs held had Xid errors of the list $xids. A shared GPU has its errors in the row of each of its holders:
-- they count once.
CREATE OR REPLACE TEMP TABLE facts AS
WITH ended AS (
    SELECT
        cluster,
        nodes AS node,
        "user",
        "end" AS since_s,
        job_id,
        state IN ('FAILED', 'NODE_FAIL') AS failed,
        state = 'COMPLETED' AS completed
    FROM jobs
    WHERE cluster = $cluster AND "end" > $now - 86400 AND "end" <= $now AND gpus > 0 AND n_nodes = 1 AND "start" IS NOT NULL
),
since AS (
    SELECT *, coalesce(max(since_s) FILTER (completed) OVER (PARTITION BY node), 0) AS completed_at
    FROM ended
),
of_jobs AS (
    SELECT
        node,
        count(*) AS ended_1d,
        count(*) FILTER (failed) AS failed_1d,
        count(DISTINCT "user") FILTER (failed) AS failed_users_1d,
        count(*) FILTER (completed) AS completed_1d,
        count(*) FILTER (failed AND since_s > completed_at) AS failed_in_row,
        count(DISTINCT "user") FILTER (failed AND since_s > completed_at) AS failed_users_in_row
    FROM since
    GROUP BY node
),
errors AS (
    SELECT node, gpu_uuid, hour_utc, job_id, run_start, unnest(xid) AS xid, unnest(xids) AS number
    FROM hours
    WHERE cluster = $cluster AND hour_utc > $now - 86400 AND hour_utc <= $now AND xid <> []
),
of_gpus AS (
    SELECT node, sum(number) AS xids_1d
    FROM (SELECT node, gpu_uuid, hour_utc, xid, max(number) AS number FROM errors GROUP BY ALL)
    WHERE list_contains($xids::INTEGER[], xid)
    GROUP BY node
),
of_runs AS (
    SELECT node, count(DISTINCT gpu_uuid) AS xid_gpus_1d, count(DISTINCT (job_id, run_start)) AS xid_runs_1d
    FROM errors
    WHERE list_contains($xids::INTEGER[], xid)
    GROUP BY node
)
SELECT
    row_number() OVER (ORDER BY node) - 1 AS place,
    $cluster::VARCHAR AS cluster,
    0::BIGINT AS job_id,
    0::BIGINT AS run_start,
    $now::BIGINT AS at_utc,
    node AS printed_id,
    node AS "node.name",
    coalesce(j.ended_1d, 0)::BIGINT AS "node.ended_1d",
    coalesce(j.failed_1d, 0)::BIGINT AS "node.failed_1d",
    coalesce(j.failed_users_1d, 0)::BIGINT AS "node.failed_users_1d",
    coalesce(j.completed_1d, 0)::BIGINT AS "node.completed_1d",
    coalesce(j.failed_in_row, 0)::BIGINT AS "node.failed_in_row",
    coalesce(j.failed_users_in_row, 0)::BIGINT AS "node.failed_users_in_row",
    coalesce(g.xids_1d, 0)::BIGINT AS "node.xids_1d",
    coalesce(r.xid_gpus_1d, 0)::BIGINT AS "node.xid_gpus_1d",
    coalesce(r.xid_runs_1d, 0)::BIGINT AS "node.xid_runs_1d"
FROM of_jobs j
FULL JOIN of_gpus g USING (node)
FULL JOIN of_runs r USING (node)
