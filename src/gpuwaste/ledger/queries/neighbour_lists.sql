-- The hostlists of the runs of a cluster that ran at some time from $from_s to $to_s, as accounting writes them. Runs that
-- have not ended, the first of which started at $open_from, are looked up by themselves, so that blocks are skipped by
-- their minima and maxima of ends.
SELECT DISTINCT nodes
FROM (
    SELECT nodes FROM jobs
    WHERE cluster = $cluster AND "start" < $to_s AND "end" > $from_s AND nodes <> ''
    UNION ALL
    SELECT nodes FROM jobs
    WHERE cluster = $cluster AND "start" >= $open_from AND "start" < $to_s AND "end" IS NULL AND nodes <> ''
)
LIMIT $most;
