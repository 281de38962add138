-- How many actions of the kinds $kinds were sent since UTC second $since.
SELECT count(*) AS actions
FROM actions
WHERE sent_utc >= $since AND list_contains($kinds, kind)
