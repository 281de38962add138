-- Removes notices of periods that ended before $before.
DELETE FROM notices WHERE period_end < $before
