-- Events that are told with what they say. Those of runs (submitted, started, ended, ledger) have no data of their own:
-- they are read beside the run, as accounting knows it then. Of others job_id is 0 where they are about no run.
ALTER TABLE events ADD COLUMN id VARCHAR;
ALTER TABLE events ADD COLUMN subject VARCHAR;
ALTER TABLE events ADD COLUMN data VARCHAR;

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
