-- A history that does not name GPUs leaves their number unknown; 0 means none.
ALTER TABLE jobs ALTER COLUMN gpus DROP NOT NULL;
