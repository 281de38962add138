-- By user: the ended runs whose GPUs were idle to the end, for $shortest seconds and more, and their idle GPU-seconds then.
SELECT j."user", count(*) AS runs, sum(s.gpus * (s.end_s - s.begin_s))::DOUBLE AS idle_s
FROM stretches s
JOIN jobs j ON j.cluster = s.cluster AND j.job_id = s.job_id AND j.run_start = s.run_start
WHERE s.ended AND NOT s.woke AND s.end_s - s.begin_s >= $shortest AND s.begin_s + $shortest >= $from AND s.begin_s + $shortest < $to
GROUP BY j."user"
ORDER BY j."user"
