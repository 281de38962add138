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
    facts VARCHAR NOT NULL -- JSON
);
