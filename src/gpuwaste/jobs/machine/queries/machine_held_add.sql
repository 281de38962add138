-- Adds what runs hold on each node, a JSON array, but for runs of which that is known.
INSERT INTO held_on_node BY NAME
SELECT n.*
FROM (
    SELECT $cluster AS cluster, unnest(from_json_strict($rows::JSON,
        '[{"job_id": "BIGINT", "run_start": "BIGINT", "node": "VARCHAR", "gpus": "INTEGER", "cpus": "INTEGER",
        "memory_b": "BIGINT"}]'), recursive := true)
) n
ANTI JOIN held_on_node USING (cluster, job_id, run_start)
