-- The newest event of the history stream; 0 where there is none.
SELECT coalesce(max(seq), 0) AS seq FROM events
