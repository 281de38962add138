-- Energy of the node's CPU packages by the job's CPU time, this GPU's part of it, and over which time it was measured. NULL in
-- rows from before, of older agents, and of nodes whose counters the agent cannot read: sums of days stay as they are.
ALTER TABLE hours ADD COLUMN cpu_energy_ms BIGINT;
ALTER TABLE hours ADD COLUMN cpu_energy_j DOUBLE;
ALTER TABLE days ADD COLUMN cpu_energy_ms BIGINT;
ALTER TABLE days ADD COLUMN cpu_energy_j DOUBLE;
-- Of the rows of the run's own GPUs.
ALTER TABLE judged ADD COLUMN cpu_energy_ms BIGINT;
ALTER TABLE judged ADD COLUMN cpu_energy_j DOUBLE;
ALTER TABLE day_sums ADD COLUMN cpu_energy_ms BIGINT;
ALTER TABLE day_sums ADD COLUMN cpu_energy_j DOUBLE;
