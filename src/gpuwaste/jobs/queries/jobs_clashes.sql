-- What changed of runs that an earlier page of this import has brought, ended: rows of other runs with the same key.
SELECT to_json(c)::VARCHAR AS raw
FROM changed_jobs c
SEMI JOIN import_keys k USING (cluster, job_id, run_start)
SEMI JOIN (SELECT * FROM jobs WHERE "end" IS NOT NULL) j USING (cluster, job_id, run_start)
ORDER BY c.job_id, c.run_start
