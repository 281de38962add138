-- What was said of running jobs again, once each: at their start, ten minutes later (early), and before their time limit
-- (limit). Rows come in the order of time; like jobs and hours it has no PRIMARY KEY: one writer adds each once.
CREATE TABLE rescored (
    cluster VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    run_start BIGINT NOT NULL,
    moment VARCHAR NOT NULL, -- start, early, limit
    at_utc BIGINT NOT NULL,
    p MAP(VARCHAR, DOUBLE) NOT NULL, -- probability by target
    limit_p DOUBLE, -- of reaching the time limit; NULL: not known, or another moment
    limit_at BIGINT, -- when the limit is reached; NULL for another moment
    usual BOOLEAN NOT NULL, -- whether the user's jobs like it all reach their limit
    model_hash VARCHAR NOT NULL -- empty: by job history only
);
