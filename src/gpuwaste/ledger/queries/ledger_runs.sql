-- Picks the runs that a report covers, $most at most, in their order, for ledger_picked and ledger_devices.
CREATE OR REPLACE TEMP TABLE picked_runs AS
SELECT
    j.*,
-- include: day_part
    ,
    coalesce(p.whole_node, false) AS whole_node,
    row_number() OVER (ORDER BY j.run_start, j.job_id) AS place
FROM (
    SELECT j.*
    FROM
-- include: ledger_candidates
    WHERE
-- include: ledger_scope
    LIMIT $most
) j
LEFT JOIN partitions p ON p.cluster = j.cluster AND p.name = j."partition"
