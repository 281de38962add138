-- Makes the temp table for the names of hostlists.
CREATE OR REPLACE TEMP TABLE list_names (nodes VARCHAR, node VARCHAR, place BIGINT, names BIGINT)
