-- The runs that a document judges itself; of this connection.
CREATE OR REPLACE TEMP TABLE judged_parts AS SELECT * FROM judged LIMIT 0
