-- What profiling counters said of a GPU: means over profiled_ms, bytes in it. NULL where none were read, as in rows from
-- before. A mean that was not read in all of profiled_ms is NULL.
ALTER TABLE hours ADD COLUMN profiled_ms BIGINT;
ALTER TABLE hours ADD COLUMN sm_active DOUBLE;
ALTER TABLE hours ADD COLUMN tensor_active DOUBLE;
ALTER TABLE hours ADD COLUMN dram_active DOUBLE;
ALTER TABLE hours ADD COLUMN nvlink_b BIGINT;
ALTER TABLE hours ADD COLUMN pcie_b BIGINT;
ALTER TABLE days ADD COLUMN profiled_ms BIGINT;
ALTER TABLE days ADD COLUMN sm_active DOUBLE;
ALTER TABLE days ADD COLUMN tensor_active DOUBLE;
ALTER TABLE days ADD COLUMN dram_active DOUBLE;
ALTER TABLE days ADD COLUMN nvlink_b BIGINT;
ALTER TABLE days ADD COLUMN pcie_b BIGINT;
