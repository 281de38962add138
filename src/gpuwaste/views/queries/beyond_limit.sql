    -- Whether a run of `used` seconds ran on beyond its limit. One that is stopped at its limit ends up to a minute later.
    used > time_limit_s + 60 AND used * 20 > time_limit_s * 21 AS beyond
