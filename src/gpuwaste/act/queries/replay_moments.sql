-- The instants at which rules look at each stretch: once it has lasted for each of $afters (seconds), and what the
-- ledger says then; what was known before the stretch is that of the rows before it.
CREATE OR REPLACE TEMP TABLE looked AS
SELECT row_number() OVER () - 1 AS place, s.*, a.after_s, s.begin_s + a.after_s AS at_utc
FROM stretches s
JOIN (SELECT unnest($afters::BIGINT[]) AS after_s) a ON a.after_s <= s.end_s - s.begin_s
WHERE s.begin_s + $shortest >= $from AND s.begin_s + a.after_s < $to
