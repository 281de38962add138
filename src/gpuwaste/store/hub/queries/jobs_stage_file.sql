-- Puts the job rows of a file that holds a JSON array into the scratch table; a twentieth of the time of jobs_stage.
INSERT INTO staged_jobs BY NAME
SELECT * FROM read_json($file, format = 'array', maximum_object_size = 33554432, columns = {
    cluster: 'VARCHAR', job_id: 'BIGINT', run_start: 'BIGINT', submit: 'BIGINT', printed_id: 'VARCHAR',
    array_job_id: 'BIGINT', array_task_id: 'BIGINT', het_job_id: 'BIGINT', het_offset: 'BIGINT',
    "name": 'VARCHAR', "user": 'VARCHAR', account: 'VARCHAR', "group": 'VARCHAR', "partition": 'VARCHAR',
    qos: 'VARCHAR', time_limit_s: 'BIGINT', req_tres: 'VARCHAR', submit_line: 'VARCHAR',
    interactive: 'BOOLEAN', "start": 'BIGINT', restarts: 'INTEGER', nodes: 'VARCHAR', n_nodes: 'INTEGER',
    cpus: 'INTEGER', gpus: 'INTEGER', gpu_type: 'VARCHAR', alloc_tres: 'VARCHAR', mem_req_b: 'BIGINT',
    "end": 'BIGINT', elapsed_s: 'BIGINT', suspended_s: 'BIGINT', state: 'VARCHAR', exit_code: 'INTEGER',
    exit_signal: 'INTEGER', total_cpu_s: 'DOUBLE', max_rss_b: 'BIGINT', verdict_id: 'VARCHAR'
})
