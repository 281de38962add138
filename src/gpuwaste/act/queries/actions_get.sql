-- The actions whose id begins with $id, two at most, with how their runs ended as far as accounting tells.
SELECT a.*, j.state AS run_state, j."end" AS run_end
FROM actions a
LEFT JOIN jobs j ON j.cluster = a.cluster AND j.job_id = a.job_id AND j.run_start = a.run_start
WHERE starts_with(a.id, $id)
ORDER BY a.id
LIMIT 2
