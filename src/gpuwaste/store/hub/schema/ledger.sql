-- Ledger: what was seen of allocated GPUs, and what the runs were judged to be.

-- How each partition shares its nodes.
CREATE TABLE partitions (
    cluster VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    whole_node BOOLEAN NOT NULL,
    PRIMARY KEY (cluster, name)
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
    confidence VARCHAR NOT NULL,
    xid INTEGER[], -- Xid errors by number: xid[i] was seen xids[i] times; NULL where the agent cannot tell
    xids BIGINT[],
    -- What profiling counters said of the GPU: means over profiled_ms, bytes in it. NULL where none were read; a mean that was
    -- not read in all of profiled_ms is NULL.
    profiled_ms BIGINT,
    sm_active DOUBLE,
    tensor_active DOUBLE,
    dram_active DOUBLE,
    nvlink_b BIGINT,
    pcie_b BIGINT,
    energy_ms BIGINT, -- over which energy_j was measured; NULL where the agent does not tell
    idle_energy_j DOUBLE, -- its part at 0 % utilization
    -- Energy of the node's CPU packages by the job's CPU time, this GPU's part of it, and over which time it was measured; NULL
    -- where the agent cannot read the node's counters.
    cpu_energy_ms BIGINT,
    cpu_energy_j DOUBLE
);

-- Old hours added up: one row for each GPU of a run and UTC day. Bit i of `hours` says that the row of hour
-- day_utc + 3600 * i is in it; such an hour stands here or in table hours, never in both. Xid errors are not kept: rules and
-- events look at the last day.
CREATE TABLE days (
    part USMALLINT NOT NULL, -- of the user (query day_part): what a user's report skips by
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    node VARCHAR NOT NULL,
    gpu_uuid VARCHAR NOT NULL,
    day_utc BIGINT NOT NULL,
    hours INTEGER NOT NULL,
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
    power_w_at_full DOUBLE, -- the mean over power_full_ms
    power_full_ms INTEGER NOT NULL,
    power_limit_w DOUBLE,
    sm_ratio_at_full DOUBLE, -- the mean over sm_full_ms
    sm_full_ms INTEGER NOT NULL,
    hang_ms INTEGER NOT NULL, -- by the limits of the day on which it was added up
    cpu_s DOUBLE,
    cpu_known_ms INTEGER NOT NULL,
    host_mem_max_b BIGINT,
    map_source VARCHAR NOT NULL,
    confidence VARCHAR NOT NULL,
    profiled_ms BIGINT, -- this and what follows as in hours
    sm_active DOUBLE,
    tensor_active DOUBLE,
    dram_active DOUBLE,
    nvlink_b BIGINT,
    pcie_b BIGINT,
    energy_ms BIGINT,
    idle_energy_j DOUBLE, -- the part of split_j
    split_j DOUBLE, -- energy_j of the rows of which idle_energy_j was known
    cpu_energy_ms BIGINT,
    cpu_energy_j DOUBLE
);

-- What accounting itself has of the use of a run's GPUs: a row for each GPU that jobstats names, a row of a run for Slurm's own
-- readings. Means over the run, never hours; NULL is "not known".
CREATE TABLE accounted_use (
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    source VARCHAR NOT NULL, -- jobstats, slurm
    node VARCHAR NOT NULL, -- '' of the whole run
    gpu VARCHAR NOT NULL, -- its number on the node; '' all together
    mean_pct DOUBLE,
    peak_pct DOUBLE, -- the largest reading; of Slurm of one or several GPUs of a task together
    gpu_mem_max_b BIGINT,
    gpu_mem_total_b BIGINT,
    cpus BIGINT, -- of the run on the node, as what follows: the same in the row of each of its GPUs
    cpu_s DOUBLE,
    mem_max_b BIGINT,
    mem_total_b BIGINT
);

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
    causes VARCHAR NOT NULL, -- JSON: the findings of this run alone
    -- Not in the STRUCT: a field that a migration adds to one cannot be replayed from the log after a kill -9 (DuckDB 1.5.5).
    energy_ms BIGINT, -- of the run's own GPUs: the time over which own.energy_j was measured
    split_j DOUBLE, -- how much of own.energy_j is known to be idle or not
    wasted_j DOUBLE, -- how much of split_j was drawn in wasted time
    cpu_energy_ms BIGINT, -- of the rows of the run's own GPUs
    cpu_energy_j DOUBLE
);

-- The days whose sums are in day_sums and day_reasons: those of exactly the rows of table judged of runs that ended on that
-- UTC day. What adds or removes such a row removes the day from here; the sums of a day that is not here mean nothing.
CREATE TABLE summed_days (
    rules INTEGER NOT NULL,
    "day" BIGINT NOT NULL, -- UTC seconds
    first_start BIGINT NOT NULL -- of its runs: a window that begins later cuts some of them
);

-- The sums of the judged runs of a day, of one user, account and partition: table judged has what each means.
CREATE TABLE day_sums (
    rules INTEGER NOT NULL,
    "day" BIGINT NOT NULL,
    cluster VARCHAR NOT NULL,
    "user" VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    "partition" VARCHAR NOT NULL,
    jobs BIGINT NOT NULL,
    beyond BIGINT NOT NULL, -- runs, as the next ones
    conflicts BIGINT NOT NULL,
    under_jobs BIGINT NOT NULL,
    under_devices BIGINT NOT NULL,
    under_ms BIGINT NOT NULL,
    asked_jobs BIGINT NOT NULL,
    asked_devices BIGINT NOT NULL,
    level_devices BIGINT[] NOT NULL,
    level_ms BIGINT[] NOT NULL,
    own STRUCT(
        devices BIGINT, alloc_ms BIGINT, idle_ms BIGINT, low_ms BIGINT, moderate_ms BIGINT, high_ms BIGINT,
        suspended_ms BIGINT, pending_ms BIGINT, untouched_ms BIGINT, idle_run_ms BIGINT, wasted_ms BIGINT, pct_ms BIGINT,
        seen_ms BIGINT, energy_j DOUBLE
    ) NOT NULL,
    shared STRUCT(
        devices BIGINT, alloc_ms BIGINT, idle_ms BIGINT, low_ms BIGINT, moderate_ms BIGINT, high_ms BIGINT,
        suspended_ms BIGINT, pending_ms BIGINT, untouched_ms BIGINT, idle_run_ms BIGINT, wasted_ms BIGINT, pct_ms BIGINT,
        seen_ms BIGINT, energy_j DOUBLE
    ) NOT NULL,
    energy_ms BIGINT, -- this and what follows as in judged
    split_j DOUBLE,
    wasted_j DOUBLE,
    cpu_energy_ms BIGINT,
    cpu_energy_j DOUBLE
);

-- Their unknown and exempt time by reason.
CREATE TABLE day_reasons (
    rules INTEGER NOT NULL,
    "day" BIGINT NOT NULL,
    cluster VARCHAR NOT NULL,
    "user" VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    "partition" VARCHAR NOT NULL,
    "of" VARCHAR NOT NULL, -- own or shared GPUs
    what VARCHAR NOT NULL, -- unknown or exempt
    reason VARCHAR NOT NULL,
    ms BIGINT NOT NULL
);

-- The balance: GPU-seconds of the machine by UTC hour, kind of GPUs and class; those of each hour add up to all of its GPUs.
CREATE TABLE balance_hours (
    cluster VARCHAR NOT NULL,
    hour_utc BIGINT NOT NULL,
    partitions VARCHAR NOT NULL, -- of the nodes, joined by commas
    gpu_type VARCHAR NOT NULL,
    class VARCHAR NOT NULL,
    gpu_s BIGINT NOT NULL,
    estimated_s BIGINT NOT NULL, -- of these the ones whose node is estimated
    over_s BIGINT NOT NULL -- that runs held beyond what nodes have: in no class
);

-- Runs that kept free GPUs of a node from jobs that waited, by hour and class.
CREATE TABLE balance_blockers (
    cluster VARCHAR NOT NULL,
    hour_utc BIGINT NOT NULL,
    class VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    node VARCHAR NOT NULL,
    gpu_s BIGINT NOT NULL
);

-- What the last runs of such jobs say of the size of the next request: all rows are replaced at intervals.
CREATE TABLE right_sizes (
    cluster VARCHAR NOT NULL,
    "user" VARCHAR NOT NULL,
    account VARCHAR NOT NULL, -- of the newest run, as the next one
    "partition" VARCHAR NOT NULL,
    name VARCHAR NOT NULL, -- without what changes from run to run
    gpus BIGINT NOT NULL,
    gpu_type VARCHAR NOT NULL,
    ended BIGINT NOT NULL, -- of the newest run
    kind VARCHAR NOT NULL,
    finding VARCHAR NOT NULL -- JSON
);
