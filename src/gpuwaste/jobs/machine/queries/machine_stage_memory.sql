-- Puts TRES with their memory, the JSON array $rows, into a temp table.
CREATE OR REPLACE TEMP TABLE tres_memory AS
SELECT unnest(from_json_strict($rows::JSON, '[{"alloc_tres": "VARCHAR", "memory_b": "BIGINT"}]'), recursive := true)
