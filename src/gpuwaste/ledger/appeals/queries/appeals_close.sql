-- Closes an appeal with the reply of a person.
UPDATE appeals
SET status = 'closed', outcome = $outcome, reply = $reply, replied_by = $person, replied_utc = $now
WHERE id = $id AND status = 'open'
