-- The program that a job's comment ties it to: its fingerprint, and the steps that the user declares (HASH,steps=N); '' is
-- none, NULL is not known. Like the other details it is no part of the history stream.
ALTER TABLE jobs ADD COLUMN program VARCHAR;
