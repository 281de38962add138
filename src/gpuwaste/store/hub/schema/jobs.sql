-- Jobs: the runs that accounting told, their steps, the stream of what happened to them, and where they were read.
-- In all tables of the hub times are UTC seconds and *_ms milliseconds; run_start is the last part of the run key.
-- jobs, steps and hours are keyed by what their upsert queries join on, and have no PRIMARY KEY: its index is four times the
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
    gpus INTEGER, -- NULL: a history that does not name GPUs; 0 means none
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
    max_rss_b BIGINT,
    verdict_id VARCHAR NOT NULL DEFAULT '', -- the token by which the run is joined with what was said of its submission
    -- What only analytics reads of accounting; NULL is "not known", '' is "none". The history stream does not have it.
    eligible BIGINT,
    priority BIGINT,
    flags VARCHAR,
    reason VARCHAR,
    constraints VARCHAR,
    reservation VARCHAR,
    n_steps BIGINT,
    energy_j BIGINT,
    disk_read_b BIGINT,
    disk_write_b BIGINT,
    program VARCHAR -- that the job's comment names: its fingerprint, and the steps that the user declares (HASH,steps=N)
);

-- One row for each step that has ended, but for extern.
CREATE TABLE steps (
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    step VARCHAR NOT NULL, -- a number, batch or interactive
    name VARCHAR NOT NULL,
    "start" BIGINT,
    elapsed_s BIGINT,
    tasks BIGINT,
    max_rss_b BIGINT,
    state VARCHAR NOT NULL,
    exit_code BIGINT,
    exit_signal BIGINT
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

-- History in bulk: what was imported, from where, and the raw pages that it was read from, which lie beside the store.
CREATE TABLE imports (
    id BIGINT NOT NULL,
    kind VARCHAR NOT NULL, -- whose parser reads its pages: sacct, slurmrestd, swf, csv
    key VARCHAR NOT NULL, -- what was read: KIND:FILE or KIND:CLUSTER
    cluster VARCHAR NOT NULL,
    context VARCHAR NOT NULL, -- JSON: all that the parser needs to know beside a page
    began_utc BIGINT NOT NULL,
    ended_utc BIGINT, -- NULL: it is under way, or was cut off
    end_rule VARCHAR -- accounting | submit + run, once it has ended
);

-- One row for each time that a page was read; position and until are bytes of a file or UTC seconds of a window.
CREATE TABLE pages (
    import_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    key VARCHAR NOT NULL,
    place VARCHAR NOT NULL, -- what its lines are numbered in: the file, or the window; the source of its quarantined rows
    digest VARCHAR NOT NULL, -- SHA-256 of the raw bytes; names the file that keeps them
    size_b BIGINT NOT NULL,
    packed_b BIGINT NOT NULL,
    position BIGINT NOT NULL,
    until BIGINT NOT NULL,
    line BIGINT NOT NULL, -- number of its first line in the file
    lines BIGINT NOT NULL,
    runs BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    bad BIGINT NOT NULL,
    notes VARCHAR NOT NULL, -- JSON: what the parser counted
    at_utc BIGINT NOT NULL,
    version INTEGER DEFAULT 0 -- of the columns that it gave when it was read last (PAGE_VERSION)
);

-- Rows that could not be read, kept aside with the reason.
CREATE TABLE quarantine (source VARCHAR NOT NULL, line BIGINT NOT NULL, reason VARCHAR NOT NULL, raw VARCHAR NOT NULL, at_utc BIGINT NOT NULL);
