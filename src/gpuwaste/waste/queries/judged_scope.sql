        -- Of table judged r those of $rules that a selection covers; NULL is "any".
        r.rules = $rules
        AND r."end" > $from_s
        AND r.run_start < $to_s
        AND ($user IS NULL OR r."user" = $user)
        AND ($account IS NULL OR r.account = $account)
        AND ($cluster IS NULL OR r.cluster = $cluster)
        AND ($accounts IS NULL OR list_contains($accounts::VARCHAR[], r.account) OR r."user" = $reader)
