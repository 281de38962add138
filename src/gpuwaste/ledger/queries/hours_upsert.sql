-- Upserts the rows of the JSON array $rows, one per key: the highest seq wins, and final, once said, stays. $lo and $hi
-- are the least and the greatest hour_utc among them: no other part of the table is read. Returns the rows that changed.
MERGE INTO hours h
USING (
    SELECT unnest(from_json_strict($rows::JSON, $shape), recursive := true)
) s
ON h.hour_utc BETWEEN $lo AND $hi
    AND h.cluster = s.cluster AND h.job_id = s.job_id AND h.run_start = s.run_start
    AND h.node = s.node AND h.gpu_uuid = s.gpu_uuid AND h.hour_utc = s.hour_utc
WHEN MATCHED AND s.seq > h.seq THEN UPDATE SET
    final = h.final OR s.final
    -- the other columns
WHEN MATCHED AND s.final AND NOT h.final THEN UPDATE SET final = true
WHEN NOT MATCHED THEN INSERT BY NAME
RETURNING cluster, job_id, run_start, final
