-- The runs from $from_s to $to_s with one of these hostlists but the run itself: those that the reader may see first.
-- `others` counts those that they may not; of these nothing else is shown. Runs that have not ended are looked up by
-- themselves, as in neighbour_lists.
WITH meanwhile AS (
    SELECT * FROM jobs
    WHERE cluster = $cluster AND "start" < $to_s AND "end" > $from_s
    UNION ALL
    SELECT * FROM jobs
    WHERE cluster = $cluster AND "start" >= $open_from AND "start" < $to_s AND "end" IS NULL
),
beside AS MATERIALIZED (
    SELECT
        printed_id, name, "user", state, "start", "end", gpus, nodes,
        $accounts IS NULL
        OR list_contains(
            $accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': cluster, 'account': account}
        )
        OR "user" = $reader AS visible
    FROM meanwhile
    WHERE list_contains($lists::VARCHAR[], nodes) AND NOT (job_id = $job_id AND run_start = $run_start)
)
SELECT *
FROM beside
CROSS JOIN (SELECT count(*) AS runs, count(*) FILTER (NOT coalesce(visible, false)) AS others FROM beside) counted
ORDER BY coalesce(visible, false) DESC, gpus DESC, "start", printed_id
LIMIT $most;
