-- Of the runs with GPUs that ended after $from_s and by $to_s the first $limit: how many, and when the last of them ended.
SELECT count(*) AS runs, max("end") AS last
FROM (SELECT "end" FROM jobs WHERE gpus > 0 AND "end" > $from_s AND "end" <= $to_s ORDER BY "end" LIMIT $limit)
