-- Forgets the requests whose signatures are accepted no more.
DELETE FROM inlet_requests WHERE until_utc < $now
