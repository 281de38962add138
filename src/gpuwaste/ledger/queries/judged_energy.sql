-- What is known of the energy of own GPUs, and of the CPUs that their jobs used, between the edges of the window: by
-- user, account and the steps of $step seconds from $from_s on in which runs ended; what is open or ended later is in
-- the last one.
WITH
-- include: judged_runs
,
-- include: judged_window
SELECT
    "user",
    account,
    (least(coalesce("end", $now), $now, $to_s - 1) - $from_s) // $step AS bin,
    sum(own.alloc_ms - own.pending_ms)::BIGINT AS alloc_ms,
    sum(own.energy_j) AS energy_j,
    sum(energy_ms)::BIGINT AS energy_ms,
    sum(split_j) AS split_j,
    sum(wasted_j) AS wasted_j,
    sum(cpu_energy_j) AS cpu_energy_j,
    sum(cpu_energy_ms)::BIGINT AS cpu_energy_ms
FROM parts
GROUP BY "user", account, bin
ORDER BY "user", account, bin
