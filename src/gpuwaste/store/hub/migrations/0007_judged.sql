-- The thresholds by which runs were judged. Every run that had ended by judged_until is in table judged; the standing ones
-- are those that documents use, others are on their way to take their place.
CREATE TABLE rules (
    id INTEGER NOT NULL,
    version INTEGER NOT NULL, -- of the ledger's code
    thresholds VARCHAR NOT NULL, -- JSON
    standing BOOLEAN NOT NULL,
    judged_until BIGINT NOT NULL
);

-- One row for each settled run and rules: what the ledger says of it. What changes of a run removes its rows.
CREATE TABLE judged (
    rules INTEGER NOT NULL,
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    "end" BIGINT, -- NULL: the run is open, and the row is of one document only
    "user" VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    "partition" VARCHAR NOT NULL,
    printed_id VARCHAR NOT NULL,
    array_job_id BIGINT,
    array_task_id BIGINT,
    name VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    gpus BIGINT NOT NULL,
    gpu_type VARCHAR NOT NULL,
    whole_node BOOLEAN NOT NULL,
    beyond BIGINT NOT NULL,
    conflict BOOLEAN NOT NULL,
    own STRUCT(
        devices BIGINT, alloc_ms BIGINT, idle_ms BIGINT, low_ms BIGINT, moderate_ms BIGINT, high_ms BIGINT,
        suspended_ms BIGINT, pending_ms BIGINT, untouched_ms BIGINT, idle_run_ms BIGINT, wasted_ms BIGINT, pct_ms BIGINT,
        seen_ms BIGINT, energy_j DOUBLE, unknown MAP(VARCHAR, BIGINT), exempt MAP(VARCHAR, BIGINT)
    ) NOT NULL,
    shared STRUCT( -- of GPUs that were shared: apart, never waste
        devices BIGINT, alloc_ms BIGINT, idle_ms BIGINT, low_ms BIGINT, moderate_ms BIGINT, high_ms BIGINT,
        suspended_ms BIGINT, pending_ms BIGINT, untouched_ms BIGINT, idle_run_ms BIGINT, wasted_ms BIGINT, pct_ms BIGINT,
        seen_ms BIGINT, energy_j DOUBLE, unknown MAP(VARCHAR, BIGINT), exempt MAP(VARCHAR, BIGINT)
    ),
    level_devices BIGINT[] NOT NULL, -- none, low, moderate, high, unknown
    level_ms BIGINT[] NOT NULL,
    under_devices BIGINT NOT NULL,
    under_ms BIGINT NOT NULL,
    asked_devices BIGINT NOT NULL, -- to which the rule of under-use applies
    cpu_used_s DOUBLE,
    cpu_held_s DOUBLE,
    memory_ratio DOUBLE,
    small STRUCT(until_ms BIGINT, pct DOUBLE, devices BIGINT, memory DOUBLE, memory_unknown BIGINT), -- of a run that could share a GPU
    cause_kinds VARCHAR[] NOT NULL,
    cause_s DOUBLE[] NOT NULL, -- GPU-seconds wasted by each
    causes VARCHAR NOT NULL -- JSON: the findings of this run alone
);
