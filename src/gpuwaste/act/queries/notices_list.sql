-- Notices whose period ended in [from_s, to_s), the newest first; NULL is "any".
SELECT kind, "user", period_start, period_end, dry, status, why, detail, address, at_utc, jobs, gpu_s, wasted_s,
    exempt_s, coverage, tries, next_utc
FROM notices
WHERE period_end >= $from_s AND period_end < $to_s
    AND ($user IS NULL OR ("user" = $user AND kind IN ('digest', 'limit')))
    AND ($kind IS NULL OR kind = $kind)
    AND ($dry IS NULL OR dry = $dry)
ORDER BY period_end DESC, kind, wasted_s DESC, "user", dry
LIMIT $limit
