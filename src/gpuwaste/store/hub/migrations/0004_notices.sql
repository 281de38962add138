-- Who was told of his waste, who was not, and why: one row for each user (kind digest) or address (kind staff) and period.
-- status: due, later (the mail server said so), sending, sent, failed, unclear (perhaps sent: never again), dry, not.
CREATE TABLE notices (
    kind VARCHAR NOT NULL,
    "user" VARCHAR NOT NULL,
    period_start BIGINT NOT NULL,
    period_end BIGINT NOT NULL,
    dry BOOLEAN NOT NULL,
    status VARCHAR NOT NULL,
    why VARCHAR NOT NULL, -- the rule by which nothing is sent
    detail VARCHAR NOT NULL, -- the mail server's words
    address VARCHAR NOT NULL,
    at_utc BIGINT NOT NULL,
    jobs BIGINT NOT NULL,
    gpu_s DOUBLE NOT NULL,
    wasted_s DOUBLE NOT NULL,
    exempt_s DOUBLE NOT NULL,
    coverage DOUBLE,
    tries INTEGER NOT NULL,
    next_utc BIGINT NOT NULL,
    document VARCHAR NOT NULL, -- JSON of what the mail says, until it is sent
    PRIMARY KEY (kind, "user", period_end, dry)
);
-- Users who said that they want no digest.
CREATE TABLE notice_opt_outs ("user" VARCHAR PRIMARY KEY, at_utc BIGINT NOT NULL);
