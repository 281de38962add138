    -- Whether the backfill scheduler started the run; NULL: the store does not keep accounting's flags.
    NULL::BOOLEAN AS backfilled
