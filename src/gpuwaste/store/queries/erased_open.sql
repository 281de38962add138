-- How many runs of $user accounting may tell again: those that have not ended, or that ended in the overlap of the next read.
SELECT count(*) AS runs
FROM jobs j
LEFT JOIN marks m ON m.key = 'sacct:' || j.cluster
WHERE j."user" = $user AND (j."end" IS NULL OR j."end" > m.value - $overlap_s)
