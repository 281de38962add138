-- Picks $limit lines of the job table after the first $offset, in order of waste (ledger/reports/rows.py).
CREATE OR REPLACE TEMP TABLE judged_lines AS
WITH
-- include: judged_runs
,
-- include: judged_tasks
,
-- include: judged_line_rows
SELECT *
FROM lines
ORDER BY wasted_ms DESC, alloc_ms DESC, cluster, printed_id
LIMIT $limit
OFFSET $offset
