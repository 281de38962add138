    -- Of the kept runs r those that overlap [from_s, to_s) in the scope asked for; NULL is "any".
    (r."end" IS NULL OR r."end" > $from_s)
    AND r.run_start < $to_s
    AND ($user IS NULL OR r."user" = $user)
    AND ($users IS NULL OR list_contains($users::VARCHAR[], r."user"))
    AND ($account IS NULL OR r.account = $account)
    AND ($clusters IS NULL OR list_contains($clusters::VARCHAR[], r.cluster))
    AND (
        $accounts IS NULL
        OR list_contains(
            $accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': r.cluster, 'account': r.account}
        )
        OR r."user" = $reader
    )
