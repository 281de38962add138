-- The findings about the size of requests of which the newest run ended in [from_s, to_s), in the scope asked for; NULL is
-- "any".
SELECT kind, finding
FROM right_sizes r
WHERE
    r.ended >= $from_s
    AND r.ended < $to_s
    AND ($user IS NULL OR r."user" = $user)
    AND ($account IS NULL OR r.account = $account)
    AND ($clusters IS NULL OR list_contains($clusters::VARCHAR[], r.cluster))
    AND (
        $accounts IS NULL
        OR list_contains(
            $accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': r.cluster, 'account': r.account}
        )
        OR r."user" = $reader
    )
ORDER BY kind, r.ended DESC, r.cluster, r."user", r.name, r.gpus, r.gpu_type
