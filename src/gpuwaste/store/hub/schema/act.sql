-- Act: events with data, who was told, what rules did, and the actions that they want.

-- Events that carry their data, in one stream with those of runs: seq comes from the same sequence. Of events that are about
-- no run job_id is 0. No migration may alter it, or events: DuckDB cannot replay a log in which a table with such a default
-- was altered.
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

-- Events that came by an inlet and could not be taken, each with the reason; the same bytes are kept once. An inlet
-- keeps a bounded number of them, the newest.
CREATE TABLE inlet_quarantine (
    inlet VARCHAR NOT NULL,
    digest VARCHAR NOT NULL, -- SHA-256 of the bytes
    at_utc BIGINT NOT NULL,
    sent_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    raw VARCHAR NOT NULL
);

-- Signed requests that inlets have taken. While its signature is accepted, a request is taken once.
CREATE TABLE inlet_requests (
    inlet VARCHAR NOT NULL,
    digest VARCHAR NOT NULL, -- SHA-256 of what was signed: id, time and body
    until_utc BIGINT NOT NULL -- the last second in which its signature is accepted
);

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

-- How far each rule is with each run or node: began is when its condition began to hold, NULL while it does not.
CREATE TABLE rule_ladders (
    rule VARCHAR NOT NULL,
    hash VARCHAR NOT NULL, -- of the rule's file: another one begins anew
    subject VARCHAR NOT NULL,
    began_utc BIGINT,
    step BIGINT NOT NULL, -- steps done
    step_utc BIGINT NOT NULL, -- when the last one was done
    round BIGINT NOT NULL
);

-- The steps that rules did, or would have done.
CREATE TABLE rule_firings (
    id VARCHAR NOT NULL, -- of the intent that was made, or would have been
    at_utc BIGINT NOT NULL,
    rule VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    step BIGINT NOT NULL,
    action VARCHAR NOT NULL,
    done BOOLEAN NOT NULL, -- false: only recorded
    cluster VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    "user" VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    facts VARCHAR NOT NULL, -- JSON
    campaign VARCHAR NOT NULL DEFAULT '' -- that held the step back; empty: none
);

-- Actions that rules want, one row each by the intent's id; the hub is the only writer. Those about no run have job_id 0.
CREATE TABLE actions (
    id VARCHAR NOT NULL PRIMARY KEY,
    rule VARCHAR NOT NULL,
    rule_hash VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    "user" VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    options VARCHAR NOT NULL, -- JSON
    facts VARCHAR NOT NULL, -- JSON
    approve VARCHAR NOT NULL,
    decided_utc BIGINT NOT NULL,
    expires_utc BIGINT NOT NULL,
    status VARCHAR NOT NULL,
    status_utc BIGINT NOT NULL,
    person VARCHAR NOT NULL, -- who approved or refused it
    person_utc BIGINT NOT NULL,
    plan VARCHAR NOT NULL, -- JSON: what the actor read before it sent the action
    sends BIGINT NOT NULL, -- how often it was sent
    sent_utc BIGINT NOT NULL,
    reason VARCHAR NOT NULL,
    answer VARCHAR NOT NULL -- Slurm's words
);

-- Runs for which the rules wait, because the owner, a coordinator or an operator requested it: one row for each run of an order.
CREATE TABLE keeps (
    id VARCHAR NOT NULL, -- of the order
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    printed_id VARCHAR NOT NULL,
    "user" VARCHAR NOT NULL, -- the owner of the run
    account VARCHAR NOT NULL,
    asked_by VARCHAR NOT NULL, -- whose budget it counts for
    at_utc BIGINT NOT NULL,
    since_utc BIGINT NOT NULL, -- when it begins to count: the end of the keep before, if that was active
    until_utc BIGINT NOT NULL,
    reason VARCHAR NOT NULL
);

-- Rules that went back from act to notify by themselves, since too many of their steps were misjudged.
CREATE TABLE rule_demotions (
    rule VARCHAR NOT NULL,
    hash VARCHAR NOT NULL, -- of the rule's file: another one is not demoted
    at_utc BIGINT NOT NULL,
    judged BIGINT NOT NULL,
    wrong BIGINT NOT NULL,
    floor DOUBLE NOT NULL, -- its key precision_floor
    restored_utc BIGINT NOT NULL, -- 0: not yet
    restored_by VARCHAR NOT NULL
);

-- Which actor may act until when: one row, or none.
CREATE TABLE actor_lease (
    name VARCHAR NOT NULL PRIMARY KEY,
    holder VARCHAR NOT NULL,
    until_utc BIGINT NOT NULL
);

-- Campaigns as the hub saw them last, by name: the text of the file. Who is held back is in no table: a keyed hash assigns.
CREATE TABLE campaigns (
    name VARCHAR NOT NULL PRIMARY KEY,
    hash VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    key_print VARCHAR NOT NULL, -- tells two keys apart
    first_utc BIGINT NOT NULL,
    gone_utc BIGINT NOT NULL -- since when the file is missing; far in the future: it is there
);

-- What happened to each campaign: found, changed, removed, returned, key changed, measured, ended.
CREATE TABLE campaign_record (
    campaign VARCHAR NOT NULL,
    at_utc BIGINT NOT NULL,
    what VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    words VARCHAR NOT NULL
);
