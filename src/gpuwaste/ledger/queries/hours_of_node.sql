-- How many hours a node has sent of each run, and the nodes on which accounting has it; NULL where it has no such run.
SELECT h.cluster, h.job_id, h.run_start, any_value(j.nodes) AS nodes, count(*) AS hours
FROM hours h
LEFT JOIN jobs j ON j.cluster = h.cluster AND j.job_id = h.job_id AND j.run_start = h.run_start
WHERE h.node = $node
GROUP BY h.cluster, h.job_id, h.run_start
