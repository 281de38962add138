-- The hits without any keep.
CREATE OR REPLACE TEMP TABLE unkept_hits AS
-- include: replay_first_hits
