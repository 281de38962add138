-- Keeps a request that an inlet takes.
INSERT INTO inlet_requests VALUES ($inlet, $digest, $until)
