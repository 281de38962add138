-- The facts of table moments (act/rules/rule_facts.py says what each means), as they were known at each moment: live there is one
-- instant, a replay has many. Running sums over what ended and began, looked up by instant, give a user's record, the
-- queue and the array as of each moment.
CREATE OR REPLACE TEMP TABLE facts AS
WITH bounds AS (
    SELECT
        coalesce(min(at_utc), 0) - 7 * 86400 AS first,
        coalesce(max(at_utc), 0) AS last,
        count(DISTINCT at_utc) = 1 AS "one",
        last - 86400 AS day,
        last - 7 * 86400 AS week
    FROM moments
),
about AS MATERIALIZED (
    SELECT
        m.*,
        j."user",
        j.account,
        j."partition",
        j.qos,
        j.reservation,
        j.gpus,
        j.cpus,
        j.n_nodes,
        j.array_job_id,
        j."start",
        j.submit,
        j.time_limit_s,
        j.verdict_id,
        j.printed_id
    FROM moments m
    JOIN jobs j ON j.cluster = m.cluster AND j.job_id = m.job_id AND j.run_start = m.run_start
),
-- Sums are looked up at an instant, a day and a week before it. Where there is one, what was before one of these three
-- counts from it on, so that running sums are over three rows of a user or partition instead of one for each second.
recent AS MATERIALIZED (
    SELECT
        j.cluster, j."user", j."partition", j.array_job_id, j.job_id, j."start", j."end", j.gpus, j.state, j.exit_code,
        j.exit_signal,
        CASE
            WHEN b."one" AND j.submit <= b.week THEN b.week
            WHEN b."one" AND j.submit <= b.day THEN b.day
            WHEN b."one" AND j.submit <= b.last THEN b.last
            WHEN NOT b."one" THEN j.submit
        END AS submit_s,
        CASE
            WHEN b."one" AND j."start" <= b.week THEN b.week
            WHEN b."one" AND j."start" <= b.day THEN b.day
            WHEN b."one" AND j."start" <= b.last THEN b.last
            WHEN NOT b."one" THEN j."start"
        END AS start_s,
        CASE
            WHEN b."one" AND j."end" <= b.week THEN b.week
            WHEN b."one" AND j."end" <= b.day THEN b.day
            WHEN b."one" AND j."end" <= b.last THEN b.last
            WHEN NOT b."one" THEN j."end"
        END AS end_s
    FROM jobs j, bounds b
    WHERE (j."end" IS NULL OR j."end" >= b.first) AND j.submit <= b.last
),
user_ends AS (
    SELECT
        cluster,
        "user",
        end_s AS since_s,
        sum(count(*)) OVER u AS ended,
        sum(count(*) FILTER (state IN {failed_states})) OVER u AS failed,
        sum(count(*) FILTER ("end" - "start" < 60)) OVER u AS brief,
        sum(sum(gpus)) OVER u AS gpus,
        sum(sum(gpus * ("end" - "start"))) OVER u / 3600 AS gpu_h
    FROM recent
    WHERE "start" IS NOT NULL AND end_s IS NOT NULL
    GROUP BY cluster, "user", end_s
    WINDOW u AS (PARTITION BY cluster, "user" ORDER BY end_s)
),
user_starts AS (
    SELECT cluster, "user", start_s AS since_s, sum(count(*)) OVER u AS started, sum(sum(gpus)) OVER u AS gpus
    FROM recent
    WHERE start_s IS NOT NULL
    GROUP BY cluster, "user", start_s
    WINDOW u AS (PARTITION BY cluster, "user" ORDER BY start_s)
),
queued AS (
    SELECT cluster, "partition", submit_s AS since_s, 1 AS change FROM recent
    UNION ALL BY NAME
    SELECT cluster, "partition", coalesce(start_s, end_s) AS since_s, -1 AS change
    FROM recent
    WHERE coalesce(start_s, end_s) IS NOT NULL
),
queue_at AS (
    SELECT cluster, "partition", since_s, sum(sum(change)) OVER (PARTITION BY cluster, "partition" ORDER BY since_s) AS waiting
    FROM queued
    GROUP BY cluster, "partition", since_s
),
tasks AS (
    SELECT
        cluster,
        array_job_id,
        "end" AS since_s,
        job_id,
        CASE WHEN state IN ('FAILED', 'OUT_OF_MEMORY', 'TIMEOUT') THEN state || coalesce(exit_code, 0) || '/' || coalesce(exit_signal, 0) END AS failure,
        row_number() OVER (PARTITION BY cluster, array_job_id ORDER BY "end", job_id) AS number
    FROM recent
    WHERE array_job_id IS NOT NULL AND "start" IS NOT NULL AND "end" IS NOT NULL
),
task_rows AS (
    SELECT *, number - row_number() OVER (PARTITION BY cluster, array_job_id, failure ORDER BY since_s, job_id) AS island
    FROM tasks
),
array_at AS (
    SELECT
        cluster,
        array_job_id,
        since_s,
        number AS ended,
        CASE
            WHEN failure IS NULL THEN 0
            ELSE row_number() OVER (PARTITION BY cluster, array_job_id, failure, island ORDER BY since_s, job_id)
        END AS failed_in_row
    FROM task_rows
    QUALIFY row_number() OVER (PARTITION BY cluster, array_job_id, since_s ORDER BY job_id DESC) = 1
),
user_at AS (
    SELECT
        a.*,
        (coalesce(s.started, 0) - coalesce(e.ended, 0))::BIGINT AS running_jobs,
        (coalesce(s.gpus, 0) - coalesce(e.gpus, 0))::BIGINT AS running_gpus,
        (coalesce(e.ended, 0) - coalesce(d.ended, 0))::BIGINT AS ended_1d,
        (coalesce(e.failed, 0) - coalesce(d.failed, 0))::BIGINT AS failed_1d,
        (coalesce(e.brief, 0) - coalesce(d.brief, 0))::BIGINT AS short_1d,
        (coalesce(e.gpu_h, 0) - coalesce(w.gpu_h, 0))::DOUBLE AS gpu_h_7d
    FROM (SELECT DISTINCT cluster, "user", at_utc FROM about) a
    ASOF LEFT JOIN user_ends e ON e.cluster = a.cluster AND e."user" = a."user" AND e.since_s <= a.at_utc
    ASOF LEFT JOIN user_ends d ON d.cluster = a.cluster AND d."user" = a."user" AND d.since_s <= a.at_utc - 86400
    ASOF LEFT JOIN user_ends w ON w.cluster = a.cluster AND w."user" = a."user" AND w.since_s <= a.at_utc - 7 * 86400
    ASOF LEFT JOIN user_starts s ON s.cluster = a.cluster AND s."user" = a."user" AND s.since_s <= a.at_utc
),
waiting_at AS (
    SELECT a.*, coalesce(q.waiting, 0)::BIGINT AS waiting
    FROM (SELECT DISTINCT cluster, "partition", at_utc FROM about) a
    ASOF LEFT JOIN queue_at q ON q.cluster = a.cluster AND q."partition" = a."partition" AND q.since_s <= a.at_utc
),
said AS (
    SELECT
        id,
        cluster,
        p['failure'] AS failure,
        p['timeout'] AS timeout,
        list_min(map_values(from_json(json_extract(quantiles, '$.walltime'), '"MAP(VARCHAR, DOUBLE)"'))) AS run_low_s,
        list_max(map_values(from_json(json_extract(quantiles, '$.walltime'), '"MAP(VARCHAR, DOUBLE)"'))) AS run_high_s
    FROM verdicts
    WHERE id IN (SELECT verdict_id FROM about WHERE verdict_id <> '')
    QUALIFY row_number() OVER (PARTITION BY cluster, id ORDER BY at_utc_us DESC) = 1
),
again AS (
    SELECT
        cluster,
        job_id,
        run_start,
        at_utc AS since_s,
        p['failure'] AS failure,
        p['timeout'] AS timeout,
        limit_p
    FROM rescored
    SEMI JOIN about USING (cluster, job_id, run_start)
)
SELECT
    a.place,
    a.cluster,
    a.job_id,
    a.run_start,
    a.at_utc,
    a.printed_id,
    a.job_id AS "job.id",
    a."user" AS "job.user",
    a.account AS "job.account",
    a."partition" AS "job.partition",
    a.qos AS "job.qos",
    coalesce(a.reservation, '') AS "job.reservation",
    a.gpus::BIGINT AS "job.gpus",
    a.cpus::BIGINT AS "job.cpus",
    a.n_nodes::BIGINT AS "job.nodes",
    a.array_job_id IS NOT NULL AS "job.array",
    coalesce(greatest(a.at_utc - a."start", 0), 0)::DOUBLE AS "job.run_s",
    a.time_limit_s::DOUBLE AS "job.limit_s",
    CASE WHEN a."start" IS NULL THEN a.time_limit_s ELSE a."start" + a.time_limit_s - a.at_utc END::DOUBLE AS "job.left_s",
    greatest(coalesce(a."start", a.at_utc) - a.submit, 0)::DOUBLE AS "job.waited_s",
    a."ledger.idle_s",
    a."ledger.idle_gpus",
    a."ledger.longest_idle_s",
    a."ledger.untouched_gpus",
    a."ledger.wasted_gpu_s",
    a."ledger.exempt_gpu_s",
    a."ledger.age_s",
    a."ledger.coverage",
    a."ledger.hang_s",
    a."ledger.cpu_cores",
    a."ledger.idle_nodes",
    a."ledger.idle_nodes_s",
    u.running_jobs AS "user.running_jobs",
    u.running_gpus AS "user.running_gpus",
    u.ended_1d AS "user.ended_1d",
    u.failed_1d AS "user.failed_1d",
    u.short_1d AS "user.short_1d",
    u.gpu_h_7d AS "user.gpu_h_7d",
    q.waiting AS "queue.waiting_jobs",
    CASE WHEN a.array_job_id IS NOT NULL THEN coalesce(t.ended, 0) END::BIGINT AS "array.ended",
    CASE WHEN a.array_job_id IS NOT NULL THEN coalesce(t.failed_in_row, 0) END::BIGINT AS "array.failed_in_row",
    v.failure AS "prediction.failure",
    v.timeout AS "prediction.timeout",
    v.run_low_s AS "prediction.run_low_s",
    v.run_high_s AS "prediction.run_high_s",
    r.failure AS "rescore.failure",
    r.timeout AS "rescore.timeout",
    r.limit_p AS "rescore.limit",
    (a.at_utc - r.since_s)::DOUBLE AS "rescore.age_s"
FROM about a
JOIN user_at u ON u.cluster = a.cluster AND u."user" = a."user" AND u.at_utc = a.at_utc
JOIN waiting_at q ON q.cluster = a.cluster AND q."partition" = a."partition" AND q.at_utc = a.at_utc
ASOF LEFT JOIN array_at t ON t.cluster = a.cluster AND t.array_job_id = a.array_job_id AND t.since_s <= a.at_utc
LEFT JOIN said v ON v.cluster = a.cluster AND v.id = a.verdict_id AND a.verdict_id <> ''
ASOF LEFT JOIN again r
    ON r.cluster = a.cluster AND r.job_id = a.job_id AND r.run_start = a.run_start AND r.since_s <= a.at_utc
