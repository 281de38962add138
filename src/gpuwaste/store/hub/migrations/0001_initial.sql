-- The hub's store. Times are UTC seconds, *_ms are milliseconds; run_start is the last part of the run key.
-- jobs and hours are keyed by what their upsert queries join on, and have no PRIMARY KEY: its index is four times the
-- data, no read uses it, and the lake that a larger site moves to has none. One writer keeps each key single.
CREATE TABLE jobs (
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    submit BIGINT NOT NULL,
    printed_id VARCHAR NOT NULL,
    array_job_id BIGINT,
    array_task_id BIGINT,
    het_job_id BIGINT,
    het_offset BIGINT,
    name VARCHAR NOT NULL,
    "user" VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    "group" VARCHAR NOT NULL,
    "partition" VARCHAR NOT NULL,
    qos VARCHAR NOT NULL,
    time_limit_s BIGINT,
    req_tres VARCHAR NOT NULL,
    submit_line VARCHAR NOT NULL,
    interactive BOOLEAN NOT NULL,
    "start" BIGINT,
    restarts INTEGER,
    nodes VARCHAR NOT NULL,
    n_nodes INTEGER,
    cpus INTEGER,
    gpus INTEGER NOT NULL,
    gpu_type VARCHAR NOT NULL,
    alloc_tres VARCHAR NOT NULL,
    mem_req_b BIGINT,
    "end" BIGINT,
    elapsed_s BIGINT,
    suspended_s BIGINT NOT NULL,
    state VARCHAR NOT NULL,
    exit_code INTEGER,
    exit_signal INTEGER,
    total_cpu_s DOUBLE,
    max_rss_b BIGINT
);

-- The rows that won: one per allocated GPU and UTC hour. pct[i] % was seen for util_ms[i] milliseconds.
CREATE TABLE hours (
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    node VARCHAR NOT NULL,
    gpu_uuid VARCHAR NOT NULL,
    hour_utc BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    final BOOLEAN NOT NULL,
    share DOUBLE NOT NULL,
    t0_ms BIGINT NOT NULL,
    t1_ms BIGINT NOT NULL,
    pct UTINYINT[] NOT NULL,
    util_ms INTEGER[] NOT NULL,
    idle_run_ms INTEGER NOT NULL,
    unknown_reason VARCHAR[] NOT NULL,
    unknown_ms INTEGER[] NOT NULL,
    suspended_ms INTEGER NOT NULL,
    proc_seen BOOLEAN NOT NULL,
    mem_max_b BIGINT,
    mem_total_b BIGINT,
    energy_j DOUBLE,
    last_active_ms BIGINT,
    power_w_at_full DOUBLE,
    power_limit_w DOUBLE,
    sm_ratio_at_full DOUBLE,
    cpu_s DOUBLE,
    host_mem_max_b BIGINT,
    map_source VARCHAR NOT NULL,
    confidence VARCHAR NOT NULL
);

-- The history stream: what happened to a run, in the order in which the hub learned it.
CREATE SEQUENCE event_seq;
CREATE TABLE events (
    seq BIGINT NOT NULL DEFAULT nextval('event_seq'),
    kind VARCHAR NOT NULL, -- started, ended, ledger
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    at_utc BIGINT NOT NULL
);

CREATE TABLE partitions (
    cluster VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    whole_node BOOLEAN NOT NULL,
    PRIMARY KEY (cluster, name)
);

-- Where an importer stands: key sacct:CLUSTER holds the UTC second up to which accounting was read.
CREATE TABLE marks (key VARCHAR PRIMARY KEY, value BIGINT NOT NULL);

-- Rows that could not be read, kept aside with the reason.
CREATE TABLE quarantine (source VARCHAR NOT NULL, line BIGINT NOT NULL, reason VARCHAR NOT NULL, raw VARCHAR NOT NULL, at_utc BIGINT NOT NULL);
