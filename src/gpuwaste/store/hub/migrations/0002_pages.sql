-- History in bulk: what was imported, from where, and the raw pages that it was read from, which lie beside the store.
CREATE TABLE imports (
    id BIGINT NOT NULL,
    kind VARCHAR NOT NULL, -- whose parser reads its pages: sacct, slurmrestd, swf, csv
    key VARCHAR NOT NULL, -- what was read: KIND:FILE or KIND:CLUSTER
    cluster VARCHAR NOT NULL,
    context VARCHAR NOT NULL, -- JSON: all that the parser needs to know beside a page
    began_utc BIGINT NOT NULL,
    ended_utc BIGINT, -- NULL: it is under way, or was cut off
    end_rule VARCHAR -- accounting | submit + run, once it has ended
);

-- One row for each time that a page was read; position and until are bytes of a file or UTC seconds of a window.
CREATE TABLE pages (
    import_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    key VARCHAR NOT NULL,
    place VARCHAR NOT NULL, -- what its lines are numbered in: the file, or the window; the source of its quarantined rows
    digest VARCHAR NOT NULL, -- SHA-256 of the raw bytes; names the file that keeps them
    size_b BIGINT NOT NULL,
    packed_b BIGINT NOT NULL,
    position BIGINT NOT NULL,
    until BIGINT NOT NULL,
    line BIGINT NOT NULL, -- number of its first line in the file
    lines BIGINT NOT NULL,
    runs BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    bad BIGINT NOT NULL,
    notes VARCHAR NOT NULL, -- JSON: what the parser counted
    at_utc BIGINT NOT NULL
);
