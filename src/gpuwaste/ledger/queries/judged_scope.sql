        -- Of table judged r those of $rules that a selection covers; NULL is "any". Those that ended from $whole_from to
        -- before $whole_to are left out: their sums are stored; so are those that ended after $until.
        r.rules = $rules
        AND r."end" > $from_s
        AND ($until IS NULL OR r."end" <= $until)
        AND ($whole_to IS NULL OR r."end" < $whole_from OR r."end" >= $whole_to)
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
