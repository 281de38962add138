-- Removes the findings about the size of requests of which the newest run ended by $from_s.
DELETE FROM right_sizes WHERE ended <= $from_s
