    -- Whether the backfill scheduler started the run; NULL: accounting's flags do not say which scheduler did.
    CASE WHEN flags LIKE '%SchedBackfill%' THEN true WHEN flags LIKE '%Sched%' THEN false END AS backfilled
