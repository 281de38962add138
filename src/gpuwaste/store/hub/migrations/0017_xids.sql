-- Xid errors by number: xid[i] was seen xids[i] times. A row from before has NULL, as one of an older agent has no errors.
-- Days that are added up do not keep them: rules and events look at the last day.
ALTER TABLE hours ADD COLUMN xid INTEGER[];
ALTER TABLE hours ADD COLUMN xids BIGINT[];
