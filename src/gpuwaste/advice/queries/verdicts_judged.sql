-- One row for each picked verdict: how it stands (rejected, ended, open, no job) and whether one of the targets that it
-- named came true. Until a token is told a job may wait or run under it: a verdict is open
-- while a run of that user, submitted within seconds of it, has not ended. An expected start held where the first start was in
-- its interval, $slack_s seconds more on either side: slurmctld looks at the queue now and then.
CREATE OR REPLACE TEMP TABLE judged_verdicts AS
WITH runs AS (
    SELECT id, count(*) AS runs, bool_and("end" IS NOT NULL) AS ended, min("start") AS started FROM verdict_runs GROUP BY id
),
hits AS (SELECT id, bool_or(came) FILTER (said) AS hit FROM verdict_targets GROUP BY id),
waiting AS (
    SELECT DISTINCT p.id
    FROM (SELECT id, cluster, "user", at_utc_us // 1000000 AS at FROM picked_verdicts WHERE run_job_id IS NULL) p
    JOIN (SELECT cluster, "user", submit FROM jobs WHERE "end" IS NULL) j ON j.cluster = p.cluster AND j."user" = p."user"
    WHERE j.submit BETWEEN p.at - 2 AND p.at + 30
)
SELECT
    p.*,
    coalesce(r.runs, 0) AS runs,
    h.hit,
    CASE WHEN json_extract(p.quantiles, '$.start') IS NOT NULL THEN r.started END AS started,
    r.started BETWEEN json_extract(p.quantiles, '$.start."0.1"')::DOUBLE - $slack_s
        AND json_extract(p.quantiles, '$.start."0.9"')::DOUBLE + $slack_s AS start_within,
    CASE
        WHEN p.action = 'reject' THEN 'rejected'
        WHEN r.ended THEN 'ended'
        WHEN r.runs > 0 OR w.id IS NOT NULL OR p.at_utc_us >= $young_us THEN 'open'
        ELSE 'no job'
    END AS stands
FROM picked_verdicts p
LEFT JOIN runs r ON r.id = p.id
LEFT JOIN hits h ON h.id = p.id
LEFT JOIN waiting w ON w.id = p.id
