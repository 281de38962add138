-- A job's name without what changes from run to run, as normal_name (jobs/history/job_names.py); a part of a query. It only
-- chooses which runs are read.
CASE WHEN regexp_matches(name, '\pL') THEN regexp_replace(lower(left(name, 64)), '\p{Nd}+', '#', 'g') ELSE left(name, 64) END AS such
