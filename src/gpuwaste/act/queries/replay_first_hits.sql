    SELECT
        s.threshold_s,
        l.cluster,
        l.job_id,
        l.run_start,
        l.gpus,
        l.at_utc,
        l.until_s,
        l.ended,
        l.woke
    FROM looked l
    SEMI JOIN matched m ON m.place = l.place
    JOIN (SELECT unnest($afters::BIGINT[]) AS threshold_s) s ON l.after_s >= s.threshold_s
    QUALIFY row_number() OVER (PARTITION BY s.threshold_s, l.cluster, l.job_id, l.run_start ORDER BY l.at_utc) = 1
