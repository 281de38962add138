-- Of each picked verdict with an outcome: the user, by target the model's probability and that of $beside, and whether the
-- target came true. '' is no second bundle.
-- TRY_CAST: a key may be half of a surrogate pair, which is no JSON here.
SELECT "user", target, p, beside, came
FROM (
    SELECT
        p.id, p."user", t.target, t.p, t.came,
        TRY_CAST(TRY_CAST(p.shadow AS JSON) AS MAP(VARCHAR, MAP(VARCHAR, DOUBLE)))[$beside][t.target] AS beside
    FROM verdict_targets t
    JOIN picked_verdicts p ON p.id = t.id
    WHERE t.p IS NOT NULL AND t.came IS NOT NULL
)
WHERE $beside = '' OR beside IS NOT NULL
ORDER BY target, id
