-- judged_runs for views: what they add up, named before the UNION, since a field of a struct is read alone only there.
held AS NOT MATERIALIZED (
    SELECT cluster, job_id, "user", account, run_start, "end", cause_kinds, cause_s,
-- include: judged_own
    FROM judged r
    WHERE
-- include: judged_scope
    UNION ALL
    SELECT cluster, job_id, "user", account, run_start, "end", cause_kinds, cause_s,
-- include: judged_own
    FROM judged_now
)
