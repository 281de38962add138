-- Events after $after, the oldest first, each with the run as accounting knows it now, and the script of its verdict; a
-- submission whose run has started since, and so has another key, is known by its submit time.
WITH page AS MATERIALIZED (SELECT * FROM events WHERE seq > $after ORDER BY seq LIMIT $limit),
picked AS MATERIALIZED (SELECT j.* FROM jobs j SEMI JOIN page p ON p.cluster = j.cluster AND p.job_id = j.job_id),
scripts AS MATERIALIZED (
    SELECT v.id, any_value(v.script) AS script
    FROM verdicts v
    SEMI JOIN (SELECT verdict_id FROM picked WHERE verdict_id <> '') p ON p.verdict_id = v.id
    GROUP BY v.id
),
runs AS MATERIALIZED ( -- of narrow rows: a window or a sort over all columns of jobs costs six times as much
    SELECT e.seq, min(j.run_start) AS run_start
    FROM page e
    JOIN picked j
        ON j.cluster = e.cluster
        AND j.job_id = e.job_id
        AND e.run_start = CASE WHEN e.kind = 'submitted' THEN j.submit ELSE j.run_start END
    GROUP BY e.seq
)
SELECT
    e.seq, e.kind, e.at_utc, e.cluster AS event_cluster, e.job_id AS event_job_id, e.run_start AS event_run_start,
    coalesce(s.script, '') AS script, j.*
FROM page e
LEFT JOIN runs r USING (seq)
LEFT JOIN picked j ON j.cluster = e.cluster AND j.job_id = e.job_id AND j.run_start = r.run_start
LEFT JOIN scripts s ON s.id = j.verdict_id
ORDER BY e.seq
