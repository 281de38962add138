-- Whether a store knows of any GPU what it was used for: by agents, by jobstats, or because a run was suspended.
SELECT EXISTS (FROM hours) OR EXISTS (FROM days) OR EXISTS (FROM accounted_use)
    OR EXISTS (FROM jobs WHERE suspended_s > 0) AS known
