-- Over which time energy_j was measured, and its part at 0 % utilization. NULL in rows from before and of older agents;
-- in days idle_energy_j is the part of split_j, of the rows of which it was known.
ALTER TABLE hours ADD COLUMN energy_ms BIGINT;
ALTER TABLE hours ADD COLUMN idle_energy_j DOUBLE;
ALTER TABLE days ADD COLUMN energy_ms BIGINT;
ALTER TABLE days ADD COLUMN idle_energy_j DOUBLE;
ALTER TABLE days ADD COLUMN split_j DOUBLE;
-- Of the run's own GPUs: the time over which own.energy_j was measured; how much of own.energy_j is known to be idle or
-- not; and how much of that was drawn in wasted time. Not in the STRUCT: a field that is added to one cannot be replayed
-- from the log after a kill -9 (DuckDB 1.5.5).
ALTER TABLE judged ADD COLUMN energy_ms BIGINT;
ALTER TABLE judged ADD COLUMN split_j DOUBLE;
ALTER TABLE judged ADD COLUMN wasted_j DOUBLE;
ALTER TABLE day_sums ADD COLUMN energy_ms BIGINT;
ALTER TABLE day_sums ADD COLUMN split_j DOUBLE;
ALTER TABLE day_sums ADD COLUMN wasted_j DOUBLE;
-- The sums of days are made again, with them.
DELETE FROM summed_days;
