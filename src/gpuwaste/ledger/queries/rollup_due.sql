-- Picks final hours of the UTC day $day whose runs had ended before $before, of jobs $from_job to $to_job. An hour that a
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
    AND h.job_id BETWEEN $from_job AND $to_job
