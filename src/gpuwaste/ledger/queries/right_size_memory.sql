-- The least memory that agents and jobstats read of the GPUs of each type on $cluster, of runs that started after $from_s, bytes. A GPU that several
-- runs shared is left out.
WITH runs AS MATERIALIZED (
    SELECT cluster, job_id, run_start, gpu_type FROM jobs WHERE cluster = $cluster AND run_start > $from_s AND gpus > 0 AND gpu_type <> ''
),
seen AS (
    SELECT cluster, job_id, run_start, mem_total_b
    FROM hours
    WHERE cluster = $cluster AND hour_utc > $from_s AND share >= 1
    UNION ALL BY NAME
    SELECT cluster, job_id, run_start, mem_total_b
    FROM days
    WHERE cluster = $cluster AND day_utc > $from_s AND share >= 1
    UNION ALL BY NAME
    SELECT cluster, job_id, run_start, gpu_mem_total_b AS mem_total_b
    FROM accounted_use
    WHERE cluster = $cluster AND run_start > $from_s AND source = 'jobstats'
)
SELECT gpu_type, min(mem_total_b) AS memory_b
FROM seen
JOIN runs USING (cluster, job_id, run_start)
WHERE mem_total_b > 0
GROUP BY gpu_type
