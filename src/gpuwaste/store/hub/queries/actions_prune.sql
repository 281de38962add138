-- Forgets actions that were decided before UTC second $before.
DELETE FROM actions WHERE decided_utc < $before
