    -- A wait; 4 bytes of it are faster to order than 8, and hold 60 years.
    least(greatest("start" - submit, 0), 2000000000)::INTEGER AS wait
