-- Runs of a cluster in [$since, $until), by the UTC day of their start, or of the submission of those that did not start.
SELECT greatest(begin - begin % 86400, $since - $since % 86400) AS day, count(*) AS runs
FROM (
    SELECT coalesce("start", submit) AS begin
    FROM jobs
    WHERE cluster = $cluster AND coalesce("start", submit) < $until AND coalesce("end", $until) > $since
)
GROUP BY ALL
ORDER BY day
