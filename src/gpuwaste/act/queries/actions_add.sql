-- Adds the actions of the JSON array $rows; those of an id that is known are left out. Returns the ids that are new.
INSERT INTO actions BY NAME
-- include: actions_sent
RETURNING id
