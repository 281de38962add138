-- Which runs are looked at, each at an instant, with what is known of its GPUs then: what job_facts adds facts to.
CREATE OR REPLACE TEMP TABLE moments (
    place BIGINT, cluster VARCHAR, job_id BIGINT, run_start BIGINT, at_utc BIGINT, "ledger.idle_s" DOUBLE,
    "ledger.idle_gpus" BIGINT, "ledger.longest_idle_s" DOUBLE, "ledger.untouched_gpus" BIGINT,
    "ledger.wasted_gpu_s" DOUBLE, "ledger.exempt_gpu_s" DOUBLE, "ledger.age_s" DOUBLE, "ledger.coverage" DOUBLE,
    "ledger.hang_s" DOUBLE, "ledger.cpu_cores" DOUBLE, "ledger.idle_nodes" VARCHAR, "ledger.idle_nodes_s" DOUBLE
)
