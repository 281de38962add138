-- Signed requests that inlets have taken. While its signature is accepted, a request is taken once.
CREATE TABLE inlet_requests (
    inlet VARCHAR NOT NULL,
    digest VARCHAR NOT NULL, -- SHA-256 of what was signed: id, time and body
    until_utc BIGINT NOT NULL -- the last second in which its signature is accepted
);
