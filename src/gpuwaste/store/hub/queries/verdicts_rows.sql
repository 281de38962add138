-- The judged verdicts, the newest first.
SELECT * FROM judged_verdicts ORDER BY at_utc_us DESC, id
