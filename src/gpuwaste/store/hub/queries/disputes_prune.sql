-- Removes what was said before UTC second $before.
DELETE FROM disputes WHERE at_utc < $before
