-- GPU-seconds held between the edges of the window, by user and account.
SELECT
    "user", account,
    sum(gpus * (least(coalesce("end", $now), $end) - greatest("start", $start)))::BIGINT AS gpu_s
FROM jobs
WHERE gpus > 0 AND "start" < $end AND coalesce("end", $now) > $start
    AND least(coalesce("end", $now), $end) > greatest("start", $start)
-- include: scope
GROUP BY "user", account
ORDER BY gpu_s DESC, "user", account
