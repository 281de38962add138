-- Of the runs that ended by $to_s how many ended after $from_s.
SELECT count(*) AS runs, count(*) FILTER ("end" > $from_s) AS left_over FROM jobs WHERE "end" <= $to_s
