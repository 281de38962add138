-- Picks verdicts of $from_us to $to_us, the newest first; NULL is "any". $reader and $accounts are what a caller may see
-- who is no operator: his own and these accounts', and only what was said to him.
CREATE OR REPLACE TEMP TABLE picked_verdicts AS
SELECT *, strftime(make_timestamp(at_utc_us), '%G-W%V') AS week
FROM verdicts
WHERE at_utc_us >= $from_us
    AND at_utc_us < $to_us
    AND ($user IS NULL OR "user" = $user)
    AND ($policy IS NULL OR policy = $policy)
    AND (
        $accounts IS NULL
        OR (
            action IN ('annotate', 'warn', 'reject')
            AND (
                "user" = $reader
                OR list_contains(
                    $accounts::STRUCT(cluster VARCHAR, account VARCHAR)[], {'cluster': cluster, 'account': account}
                )
            )
        )
    )
ORDER BY at_utc_us DESC, id
LIMIT $limit
