-- Old hours added up: one row for each GPU of a run and UTC day. Bit i of `hours` says that the row of hour
-- day_utc + 3600 * i is in it; such an hour stands here or in table hours, never in both.
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
    confidence VARCHAR NOT NULL
);
