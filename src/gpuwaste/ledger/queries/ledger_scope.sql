    -- Which of the jobs j a report covers: those that held GPUs (or reported any) and overlap [from_s, to_s), in the scope
    -- asked for; NULL is "any". With $rules those that are not judged by them, with $edges those that an edge cuts.
    j."start" IS NOT NULL
    AND j."start" < $to_s
    AND (j."end" IS NULL OR j."end" > $from_s)
    AND ($ended_by IS NULL OR j."end" <= $ended_by)
    AND ($user IS NULL OR j."user" = $user)
    AND ($first_user IS NULL OR j."user" BETWEEN $first_user AND $last_user)
    AND ($account IS NULL OR j.account = $account)
    AND ($clusters IS NULL OR list_contains($clusters::VARCHAR[], j.cluster))
    AND (
        $accounts IS NULL
        OR list_contains(
            $accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': j.cluster, 'account': j.account}
        )
        OR j."user" = $reader
    )
    AND ($running_only = false OR j."end" IS NULL)
    AND (NOT $edges OR j."start" < $from_s OR coalesce(j."end", $now) > $to_s)
    AND (
        $rules IS NULL
        OR j."end" IS NULL
        OR (
            j."end" > $judged_until
            AND (j.cluster, j.job_id, j.run_start) NOT IN (
                SELECT (cluster, job_id, run_start) FROM judged WHERE rules = $rules AND "end" > $judged_until
            )
        )
    )
-- include: ledger_held
