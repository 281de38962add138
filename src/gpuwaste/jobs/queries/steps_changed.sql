-- Keeps the steps that the store does not hold already; what is not told of one stays as it is known.
CREATE OR REPLACE TEMP TABLE changed_steps AS
WITH known AS MATERIALIZED (SELECT s.* FROM steps s SEMI JOIN staged_steps USING (cluster, job_id, run_start, step))
SELECT DISTINCT ON (n.cluster, n.job_id, n.run_start, n.step)
    n.cluster, n.job_id, n.run_start, n.step, n.name, coalesce(n."start", k."start") AS "start",
    coalesce(n.elapsed_s, k.elapsed_s) AS elapsed_s, coalesce(n.tasks, k.tasks) AS tasks,
    coalesce(n.max_rss_b, k.max_rss_b) AS max_rss_b, n.state, coalesce(n.exit_code, k.exit_code) AS exit_code,
    coalesce(n.exit_signal, k.exit_signal) AS exit_signal
FROM staged_steps n
LEFT JOIN known k USING (cluster, job_id, run_start, step)
EXCEPT
FROM known
