-- Picks final hours of the UTC day $day whose runs had ended before $before, of one in $slices of the GPUs. An hour that a
-- node saw more than a day after accounting's end of the run stays an hour.
CREATE OR REPLACE TEMP TABLE rollup_due AS
SELECT h.*
FROM hours h
SEMI JOIN (
    SELECT cluster, job_id, run_start
    FROM jobs
    WHERE "end" < $before AND "end" >= $day - 86400 AND run_start < $day + 86400
) j USING (cluster, job_id, run_start)
WHERE h.final
    AND h.hour_utc >= $day
    AND h.hour_utc < $day + 86400
    AND hash(h.node, h.gpu_uuid) % $slices = $slice
