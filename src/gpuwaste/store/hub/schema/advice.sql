-- Advice: what was said of each submission and of running jobs, and what owners contest.

-- One row for each verdict, in the order in which they came. Ids rise with time (jobs/verdict.py), so the minima and
-- maxima of each row group leave out what a page of ids does not need; like jobs and hours it has no PRIMARY KEY.
CREATE TABLE verdicts (
    id VARCHAR NOT NULL,
    cluster VARCHAR NOT NULL,
    at_utc_us BIGINT NOT NULL,
    op VARCHAR NOT NULL,
    policy VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    would_be VARCHAR NOT NULL,
    held VARCHAR NOT NULL,
    sampled BOOLEAN NOT NULL,
    override VARCHAR NOT NULL,
    "user" VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    "partition" VARCHAR NOT NULL,
    qos VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    is_array BOOLEAN NOT NULL,
    het_offset BIGINT,
    run_job_id BIGINT,
    gpus BIGINT NOT NULL,
    time_limit_s BIGINT,
    p MAP(VARCHAR, DOUBLE) NOT NULL,
    quantiles VARCHAR NOT NULL, -- JSON: target -> quantile -> value
    triggers MAP(VARCHAR, DOUBLE) NOT NULL,
    reasons VARCHAR[] NOT NULL,
    lines VARCHAR[] NOT NULL,
    script VARCHAR NOT NULL,
    model_hash VARCHAR NOT NULL,
    feature_hash VARCHAR NOT NULL,
    latency_us BIGINT NOT NULL,
    node VARCHAR NOT NULL, -- the advisor's host
    taken_utc BIGINT NOT NULL,
    shadow VARCHAR NOT NULL DEFAULT '{}', -- JSON: bundle hash -> target -> probability, of bundles beside the model in use
    campaign VARCHAR NOT NULL DEFAULT '' -- that held the policy back from the user; empty: none
);

-- What was said of running jobs again, once each: at their start, ten minutes later (early), and before their time limit
-- (limit). Rows come in the order of time; like jobs and hours it has no PRIMARY KEY: one writer adds each once.
CREATE TABLE rescored (
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    moment VARCHAR NOT NULL, -- start, early, limit
    at_utc BIGINT NOT NULL,
    p MAP(VARCHAR, DOUBLE) NOT NULL, -- probability by target
    limit_p DOUBLE, -- of reaching the time limit; NULL: not known, or another moment
    limit_at BIGINT, -- when the limit is reached; NULL for another moment
    usual BOOLEAN NOT NULL, -- whether the user's jobs like it all reach their limit
    model_hash VARCHAR NOT NULL -- empty: by job history only
);

-- What owners contest: the judgement on their runs, advice or an action of a rule, with the reply; a row for each run of an
-- appeal, or one with job_id 0 for a rejected submission. Kept as long as verdicts, for training and budgets.
CREATE TABLE appeals (
    id VARCHAR NOT NULL,
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    printed_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL, -- judgement, verdict, action
    about VARCHAR NOT NULL, -- id of the verdict or action
    "user" VARCHAR NOT NULL,
    at_utc BIGINT NOT NULL,
    words VARCHAR NOT NULL,
    evidence VARCHAR NOT NULL, -- JSON: what was known then, for staff
    status VARCHAR NOT NULL, -- open, closed
    outcome VARCHAR NOT NULL, -- upheld, dismissed
    reply VARCHAR NOT NULL,
    replied_by VARCHAR NOT NULL,
    replied_utc BIGINT NOT NULL -- 0: open
);
