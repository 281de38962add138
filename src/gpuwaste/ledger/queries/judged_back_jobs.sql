-- Has the runs that accounting tells anew judged again.
UPDATE rules SET judged_until = least(judged_until, (SELECT min("end") - 1 FROM changed_jobs))
