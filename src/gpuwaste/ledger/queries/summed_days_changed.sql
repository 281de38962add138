-- Forgets the sums of the days on which the judged runs behind $after up to $last ended.
DELETE FROM summed_days
WHERE rules = $rules
    AND "day" IN (SELECT "end" // 86400 * 86400 FROM ledger_rows WHERE place > $after AND place <= $last)
