-- Picks the first $limit runs, by their end, that ended after $from_s and by $to_s and are not judged by $rules, for
-- ledger_picked and ledger_devices.
CREATE OR REPLACE TEMP TABLE picked_runs AS
SELECT
    j.*,
-- include: day_part
    ,
    coalesce(p.whole_node, false) AS whole_node,
    row_number() OVER (ORDER BY j."end", j.job_id, j.run_start) AS place
FROM jobs j
LEFT JOIN partitions p ON p.cluster = j.cluster AND p.name = j."partition"
ANTI JOIN (
    SELECT cluster, job_id, run_start FROM judged WHERE rules = $rules AND "end" > $from_s AND "end" <= $to_s
) d ON d.cluster = j.cluster AND d.job_id = j.job_id AND d.run_start = j.run_start
WHERE
    j."start" IS NOT NULL
    AND j."end" > $from_s
    AND j."end" <= $to_s
-- include: ledger_held
ORDER BY place
LIMIT $limit
