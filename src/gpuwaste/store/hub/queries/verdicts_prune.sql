-- Removes verdicts from before $before_us; returns their ids.
DELETE FROM verdicts WHERE at_utc_us < $before_us RETURNING id
