-- What owners say of the judgement on their runs, the last word of each run. Kept as long as verdicts, for training and
-- budgets.
CREATE TABLE disputes (
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    printed_id VARCHAR NOT NULL,
    "user" VARCHAR NOT NULL,
    at_utc BIGINT NOT NULL,
    words VARCHAR NOT NULL,
    PRIMARY KEY (cluster, job_id, run_start)
);
