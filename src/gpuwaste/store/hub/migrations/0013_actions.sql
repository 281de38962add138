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

-- Which actor may act until when: one row, or none.
CREATE TABLE actor_lease (
    name VARCHAR NOT NULL PRIMARY KEY,
    holder VARCHAR NOT NULL,
    until_utc BIGINT NOT NULL
);
