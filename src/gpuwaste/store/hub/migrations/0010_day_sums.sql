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
    ) NOT NULL
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
