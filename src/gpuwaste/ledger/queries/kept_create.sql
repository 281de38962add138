-- Makes table kept_runs, for runs as table judged has them.
CREATE TABLE kept_runs AS SELECT * FROM judged LIMIT 0
