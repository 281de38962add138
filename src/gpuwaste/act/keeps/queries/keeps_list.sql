-- The newest keeps: of $user, active at $now or not, and of those that $reader or a coordinator of $accounts may see.
SELECT *
FROM keeps
WHERE
    ($user::VARCHAR IS NULL OR "user" = $user)
    AND ($active::BOOLEAN IS NULL OR (until_utc > $now) = $active)
    AND (
        $reader::VARCHAR IS NULL
        OR "user" = $reader
        OR asked_by = $reader
        OR list_contains($accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': cluster, 'account': account})
    )
ORDER BY at_utc DESC, id, cluster, job_id, run_start
LIMIT $limit
