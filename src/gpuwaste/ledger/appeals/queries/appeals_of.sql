-- The appeals on the runs of the JSON array $runs, the oldest first, once for all runs of one.
SELECT
    d.id, d.kind, d.about, arg_min(d.printed_id, d.run_start) AS printed_id, d."user", d.at_utc, d.words,
    count(*) AS runs, d.evidence, d.status, d.outcome, d.reply, d.replied_by, d.replied_utc
FROM (
    SELECT unnest(from_json_strict($runs::JSON, '[{"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'),
        recursive := true)
) n
JOIN appeals d ON d.cluster = n.cluster AND d.job_id = n.job_id AND d.run_start = n.run_start
GROUP BY ALL
ORDER BY d.at_utc, d.id
