-- Every campaign that the hub has seen.
SELECT name, hash, text, key_print, first_utc, gone_utc FROM campaigns ORDER BY name
