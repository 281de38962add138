-- The clusters whose newest import had no waits: their starts are taken to be the submissions.
SELECT cluster
FROM (
    SELECT cluster, max_by(end_rule, id) AS rule
    FROM imports
    WHERE ended_utc IS NOT NULL AND end_rule IS NOT NULL
-- include: scope
    GROUP BY cluster
)
WHERE rule <> 'accounting'
ORDER BY cluster
