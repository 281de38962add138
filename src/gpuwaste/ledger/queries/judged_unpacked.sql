-- Has table judged packed anew from its beginning.
DELETE FROM marks WHERE key = 'judged_packed_until'
