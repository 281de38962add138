-- What was said of the runs of the JSON array $runs, the oldest first, once for all runs of which the same was said.
SELECT arg_min(d.printed_id, d.run_start) AS printed_id, d."user", d.at_utc, d.words, count(*) AS runs
FROM (
    SELECT unnest(from_json_strict($runs::JSON, '[{"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'),
        recursive := true)
) n
JOIN disputes d ON d.cluster = n.cluster AND d.job_id = n.job_id AND d.run_start = n.run_start
GROUP BY d."user", d.at_utc, d.words
ORDER BY d.at_utc
