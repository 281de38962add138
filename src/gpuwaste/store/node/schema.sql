-- One UTC day of raw samples. Identities, labels and runs are interned: a sample is a row of small integers, which
-- DuckDB packs by bits. A NULL is "could not be read".
CREATE TABLE gpu (
    id USMALLINT PRIMARY KEY,
    uuid VARCHAR NOT NULL,
    instance VARCHAR NOT NULL,  -- '' for a whole GPU, else the MIG instance as gi/ci
    mem_total_b BIGINT,
    power_limit_mw BIGINT
);
CREATE TABLE label (
    id USMALLINT PRIMARY KEY,
    source VARCHAR NOT NULL,
    map_source VARCHAR NOT NULL,
    confidence VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);
CREATE TABLE run (
    id UINTEGER PRIMARY KEY,
    job_id UINTEGER NOT NULL,
    cluster VARCHAR,  -- with "start" NULL until the run's start is known
    "start" BIGINT
);
CREATE TABLE tick (
    id UINTEGER NOT NULL,
    t_us BIGINT NOT NULL,  -- UTC
    mono_us BIGINT NOT NULL
);
CREATE TABLE sample (
    tick UINTEGER NOT NULL,
    gpu USMALLINT NOT NULL,
    label USMALLINT NOT NULL,
    run UINTEGER,
    util_pct DECIMAL(5, 2),
    mem_used_kib UINTEGER,  -- drivers count in pages
    power_mw UINTEGER,
    energy_step_mj INTEGER,  -- since the GPU's reading before; what does not fit, the first one too, is in energy_jump
    sm_ratio DECIMAL(5, 4),
    procs UINTEGER
);
CREATE TABLE energy_jump (
    uuid VARCHAR NOT NULL,
    tick UINTEGER NOT NULL,
    mj BIGINT NOT NULL
);
CREATE TABLE day (
    compacted BOOLEAN NOT NULL
);
INSERT INTO day VALUES (false);
