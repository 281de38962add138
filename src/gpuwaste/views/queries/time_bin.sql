    -- The bin of `held` seconds, 8 in each decade: half a bin less and rounded, which is faster than floor; ln is than log10.
    (ln(greatest(held, 1)) * 3.4743558552260146 - 0.499999999)::INTEGER
