-- The audit: what was said of each submission, and by which verdict's token a run can be joined with it.
ALTER TABLE jobs ADD COLUMN verdict_id VARCHAR DEFAULT '';
ALTER TABLE jobs ALTER COLUMN verdict_id SET NOT NULL;

-- One row for each verdict, in the order in which they came. Ids rise with time (advice/verdicts/verdict.py), so the minima and
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
    taken_utc BIGINT NOT NULL
);
