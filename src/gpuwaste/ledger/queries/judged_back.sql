-- Has the runs that ended from $end on judged again where they are not.
UPDATE rules SET judged_until = least(judged_until, $end - 1)
