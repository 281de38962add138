-- The machine as it was: configuration, outages and reservations of its nodes, and what runs held on each node.
-- Times are UTC seconds. No table has a PRIMARY KEY (jobs.sql says why): the one writer keeps each key single.

-- One row per node and configuration: a change closes a row and opens one. The first rows begin when the hub first saw them.
CREATE TABLE machine_nodes (
    cluster VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT, -- NULL: still so
    gpus INTEGER NOT NULL,
    gpu_type VARCHAR NOT NULL, -- '' where none is named; several types in order, joined by a comma
    cpus INTEGER NOT NULL, -- that jobs can have, as memory
    memory_b BIGINT NOT NULL,
    partitions VARCHAR NOT NULL, -- names in order, joined by a comma
    features VARCHAR NOT NULL -- the same
);

-- When a node's state kept jobs away, by slurmdbd's events; by its state now while slurmdbd does not answer.
CREATE TABLE machine_outages (
    cluster VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    "start" BIGINT NOT NULL,
    "end" BIGINT, -- NULL: continues
    state VARCHAR NOT NULL -- as printed
);

-- Reservations of entire nodes. A reservation that changed has a row for each time between two changes.
CREATE TABLE machine_reservations (
    cluster VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    "start" BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    nodes VARCHAR NOT NULL, -- hostlist
    flags VARCHAR NOT NULL
);

-- What slurmctld said that a run of several nodes holds on each. Runs of one node hold there what table jobs has.
CREATE TABLE held_on_node (
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    node VARCHAR NOT NULL, -- '': the same on each of the run's nodes
    gpus INTEGER NOT NULL,
    cpus INTEGER NOT NULL,
    memory_b BIGINT NOT NULL
);
