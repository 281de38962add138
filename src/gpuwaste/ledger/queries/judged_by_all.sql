-- Until when all runs that ended are judged by each of the rules; 0 without any.
SELECT coalesce(min(judged_until), 0)::BIGINT AS until FROM rules
