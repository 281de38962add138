-- Whether a row of day_sums or day_reasons is of a selection, and of the days from $whole_from to before $whole_to.
(
    rules = $rules
    AND "day" >= $whole_from
    AND "day" < $whole_to
    AND ($user IS NULL OR "user" = $user)
    AND ($account IS NULL OR account = $account)
    AND ($clusters IS NULL OR list_contains($clusters::VARCHAR[], cluster))
    AND (
        $accounts IS NULL
        OR list_contains(
            $accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': cluster, 'account': account}
        )
        OR "user" = $reader
    )
)
