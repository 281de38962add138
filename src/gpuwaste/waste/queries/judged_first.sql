-- The earliest end of a run after $from_s.
SELECT min("end") AS first FROM jobs WHERE "end" > $from_s
