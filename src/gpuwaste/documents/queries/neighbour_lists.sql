-- The hostlists of the runs of a cluster that ran at some time from $from_s to $to_s, as accounting writes them.
SELECT DISTINCT nodes
FROM jobs
WHERE cluster = $cluster AND "start" < $to_s AND ("end" > $from_s OR "end" IS NULL) AND nodes <> ''
LIMIT $most;
