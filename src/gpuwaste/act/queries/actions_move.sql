-- Moves an action on; returns its id where it had one of the statuses $was.
-- include: actions_moved
RETURNING id
