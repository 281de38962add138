-- Which runs tell what the next one needs: with GPUs, ended after $from_s; a part of a query.
"end" > $from_s
AND gpus > 0
AND "start" IS NOT NULL
AND NOT interactive
AND state IN ('COMPLETED', 'TIMEOUT', 'OUT_OF_MEMORY')
AND "end" - "start" - suspended_s >= $min_ran_s
