-- The stored balance of a cluster in [$since, $until), by steps of the window that begins at $start.
SELECT (greatest(hour_utc, $start) - $start) // $step AS bin, partitions, gpu_type, class, sum(gpu_s)::BIGINT AS gpu_s,
    sum(estimated_s)::BIGINT AS estimated_s, sum(over_s)::BIGINT AS over_s
FROM balance_hours
WHERE cluster = $cluster AND hour_utc >= $since AND hour_utc < $until
GROUP BY ALL
