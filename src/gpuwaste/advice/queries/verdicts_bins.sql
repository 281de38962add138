-- Probabilities beside what came true, by policy, week, target and tenth of the probability.
SELECT
    p.policy, p.week, t.target, least(floor(t.p * 10), 9)::INTEGER AS bin, count(*) AS n, sum(t.p) AS sum_p,
    sum(t.share) AS sum_true
FROM verdict_targets t
JOIN picked_verdicts p ON p.id = t.id
WHERE t.p IS NOT NULL
GROUP BY ALL
ORDER BY ALL
