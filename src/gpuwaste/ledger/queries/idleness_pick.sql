-- Picks the open runs of the JSON array $rows (cluster, job_id, run_start) that hold GPUs or parts of them, in order of their start.
CREATE OR REPLACE TEMP TABLE picked_runs AS
SELECT
    j.*,
-- include: day_part
    ,
    coalesce(p.whole_node, false) AS whole_node,
    row_number() OVER (ORDER BY j.run_start, j.job_id) AS place
FROM jobs j
SEMI JOIN (
    SELECT unnest(from_json_strict($rows::JSON, '[{"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'), recursive := true)
) k ON k.cluster = j.cluster AND k.job_id = j.job_id AND k.run_start = j.run_start
LEFT JOIN partitions p ON p.cluster = j.cluster AND p.name = j."partition"
WHERE
    j."start" IS NOT NULL
    AND j."end" IS NULL
-- include: ledger_held
