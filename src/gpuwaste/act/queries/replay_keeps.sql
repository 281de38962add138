-- For each of $afters: the hits that keeps avoided or delayed, of how many owners, whether they were right, and the
-- GPU-seconds from the hit without the keep to the one after it, or to the end of the run.
WITH hits AS (
-- include: replay_first_hits
)
SELECT
    b.threshold_s,
    count(*) AS hits,
    count(*) FILTER (h.at_utc IS NULL) AS avoided,
    count(*) FILTER (b.ended AND NOT b.woke) AS correct,
    count(*) FILTER (b.ended AND b.woke) AS wrong,
    coalesce(
        sum(b.gpus * greatest(coalesce(h.at_utc, b.until_s) - b.at_utc, 0)) FILTER (b.ended AND NOT b.woke), 0
    )::DOUBLE AS not_freed_s,
    coalesce(
        sum(b.gpus * greatest(coalesce(h.at_utc, b.until_s) - b.at_utc, 0)) FILTER (b.ended AND b.woke), 0
    )::DOUBLE AS spared_s
FROM unkept_hits b
LEFT JOIN hits h USING (threshold_s, cluster, job_id, run_start)
WHERE h.at_utc IS NULL OR h.at_utc > b.at_utc
GROUP BY b.threshold_s
ORDER BY b.threshold_s
