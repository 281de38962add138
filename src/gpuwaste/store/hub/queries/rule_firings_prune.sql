-- Removes the steps that were done before $before.
DELETE FROM rule_firings WHERE at_utc < $before
