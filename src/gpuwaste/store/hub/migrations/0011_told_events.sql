-- Events that carry their data, in one stream with those of runs: seq comes from the same sequence. A table of its own:
-- DuckDB cannot replay a log in which a table with such a default was altered. Of events that are about no run job_id is 0.
CREATE TABLE told_events (
    seq BIGINT NOT NULL DEFAULT nextval('event_seq'),
    kind VARCHAR NOT NULL,
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    at_utc BIGINT NOT NULL,
    id VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    data VARCHAR NOT NULL -- JSON
);

-- Events that an outlet could not hand over, each with the reason: nobody loses them, nobody waits for them.
CREATE TABLE dead_letters (
    outlet VARCHAR NOT NULL,
    seq BIGINT NOT NULL,
    id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    at_utc BIGINT NOT NULL,
    PRIMARY KEY (outlet, seq)
);
