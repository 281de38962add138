-- Keeps all rows that a source has of a run, where the store does not hold them already. Slurm's peaks are the largest of
-- all times: sacct lists only the steps that overlap its window. A peak of 0 counts only if every step was listed, which a
-- row without a peak denies.
CREATE OR REPLACE TEMP TABLE changed_uses AS
WITH known AS MATERIALIZED (
    SELECT u.* FROM accounted_use u SEMI JOIN staged_uses USING (cluster, job_id, run_start, source)
),
merged AS (
    SELECT DISTINCT ON (n.cluster, n.job_id, n.run_start, n.source, n.node, n.gpu)
        n.* REPLACE (
            CASE
                WHEN n.source <> 'slurm' OR (n.peak_pct IS NULL AND k.peak_pct = 0) THEN n.peak_pct
                ELSE greatest(n.peak_pct, k.peak_pct)
            END AS peak_pct,
            CASE
                WHEN n.source <> 'slurm' OR (n.gpu_mem_max_b IS NULL AND k.gpu_mem_max_b = 0) THEN n.gpu_mem_max_b
                ELSE greatest(n.gpu_mem_max_b, k.gpu_mem_max_b)
            END AS gpu_mem_max_b
        )
    FROM staged_uses n
    LEFT JOIN known k USING (cluster, job_id, run_start, source, node, gpu)
),
news AS (SELECT * FROM merged EXCEPT FROM known)
SELECT m.* FROM merged m SEMI JOIN news USING (cluster, job_id, run_start, source)
