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
