-- Notes that an import has read all, and by which rule its ends are known.
UPDATE imports SET ended_utc = $now, end_rule = $end_rule WHERE id = $id
