-- Verdicts kept, by action and by whether a run has told their token.
SELECT v.action, j.verdict_id IS NOT NULL AS joined, count(*) AS verdicts
FROM verdicts v
LEFT JOIN (SELECT DISTINCT verdict_id FROM jobs WHERE verdict_id <> '') j ON j.verdict_id = v.id
GROUP BY ALL
