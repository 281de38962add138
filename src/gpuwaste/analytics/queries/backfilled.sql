    -- Whether the backfill scheduler started the run; NULL where accounting does not tell.
    NULL::BOOLEAN AS backfilled
