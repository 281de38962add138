-- Moves an action on from one of the statuses $was; null keeps a value.
UPDATE actions
SET status = $status,
    status_utc = $now,
    reason = $reason,
    person = coalesce($person, person),
    person_utc = CASE WHEN $person IS NULL THEN person_utc ELSE $now END,
    plan = coalesce($plan, plan),
    sends = sends + $sent,
    sent_utc = CASE WHEN $sent > 0 THEN $now ELSE sent_utc END,
    answer = coalesce($answer, answer)
WHERE id = $id AND list_contains($was, status)
