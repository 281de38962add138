-- What only analytics reads of accounting; NULL is "not known", '' is "none". The history stream does not have it.
ALTER TABLE jobs ADD COLUMN eligible BIGINT;
ALTER TABLE jobs ADD COLUMN priority BIGINT;
ALTER TABLE jobs ADD COLUMN flags VARCHAR;
ALTER TABLE jobs ADD COLUMN reason VARCHAR;
ALTER TABLE jobs ADD COLUMN constraints VARCHAR;
ALTER TABLE jobs ADD COLUMN reservation VARCHAR;
ALTER TABLE jobs ADD COLUMN n_steps BIGINT;
ALTER TABLE jobs ADD COLUMN energy_j BIGINT;
ALTER TABLE jobs ADD COLUMN disk_read_b BIGINT;
ALTER TABLE jobs ADD COLUMN disk_write_b BIGINT;

-- One row for each step that has ended, but for extern; like jobs without a PRIMARY KEY, one writer keeps each single.
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

-- The columns that a page gave when it was read last: pages of an older version are read again (PAGE_VERSION).
ALTER TABLE pages ADD COLUMN version INTEGER DEFAULT 0;
