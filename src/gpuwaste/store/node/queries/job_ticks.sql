-- How many ticks the day has after $since_us up to $until_us, and on which GPUs the run of $job_id that began at $start
-- held something. A run's first samples have no start yet.
SELECT
    (SELECT count(*) FROM tick WHERE t_us > $since_us AND t_us <= $until_us) AS ticks,
    coalesce((
        SELECT list(DISTINCT g.uuid || ' ' || g.instance)
        FROM sample s
        JOIN tick t ON t.id = s.tick
        JOIN gpu g ON g.id = s.gpu
        JOIN run r ON r.id = s.run
        WHERE r.job_id = $job_id AND coalesce(r."start", $start) = $start AND t.t_us > $since_us AND t.t_us <= $until_us
    ), []) AS gpus;
