-- The jobs j of which ledger_scope takes some: each line lets blocks be skipped by their minima and maxima, which the
-- conditions of ledger_scope on several columns do not allow. Nothing is judged that ended by $after.
(
    SELECT * FROM jobs WHERE NOT $edges AND "start" < $to_s AND ("end" IS NULL OR "end" > $after)
    UNION ALL
    SELECT * FROM jobs WHERE $edges AND "start" < $from_s AND ("end" IS NULL OR "end" > $from_s)
    UNION ALL
    SELECT * FROM jobs WHERE $edges AND "start" >= $from_s AND "start" < $to_s AND ("end" IS NULL OR "end" > $to_s)
) j
